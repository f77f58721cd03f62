"""What a model should be told of a transcript, as turns. What a request may lose of it:

- white space: where texts are joined, and at the ends of what the model said
- order within a reply, on the chat wire: the words of a reply come before its calls
- thoughts: those of other models, those at the end of a reply or in one that was merged with the
  next; on the chat wire all but the first
- that a result failed, but for the messages wire
- pictures whose file is gone or that the model cannot see: a label is in their place
- characters that no id, name or text may have; for some models also control characters
- why a call was broken, and everything that is not for the model (origins, details)
"""

from __future__ import annotations

import re
from typing import Any

from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.providers.normalization import CONTINUE, EARLIER, UNAVAILABLE
from tests.providers.told import (
    Call,
    Result,
    Say,
    Think,
    Turn,
    joined,
    picture,
    printable,
    seal,
    squeezed,
)
from tests.providers.transcripts import GONE, Target

_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_HALF = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """What can be encoded of a text."""
    whole = _PAIR.sub(lambda m: chr(0x10000 + (ord(m[1]) % 1024) * 1024 + ord(m[2]) % 1024), text)
    return _HALF.sub("\ufffd", whole)


def plain_json(value: Any) -> Any:
    match value:
        case str():
            return plain(value)
        case list():
            return [plain_json(item) for item in value]
        case dict():
            return {plain(key): plain_json(item) for key, item in value.items()}
        case _:
            return value


class Listener:
    """Hears a transcript as the target should be told it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._turns: list[Turn] = []
        self._calling: AssistantMessage | None = None
        self._results: dict[int, ToolResult] = {}
        self._meanwhile: list[UserMessage] = []

    def hear(self, messages: tuple[Message, ...]) -> list[Turn]:
        for message in messages:
            match message:
                case UserMessage() if self._calling:
                    self._meanwhile.append(message)
                case UserMessage():
                    self._user(message)
                case AssistantMessage():
                    self._settle()
                    self._reply(message)
                case ToolMessage(results=results):
                    for result in results:
                        self._answer(result)
        self._settle()
        if not self._turns:
            return [Turn("user", (Say(squeezed(EARLIER)),))]
        if self._turns[-1].who == "model":
            self._turns.append(Turn("user", (Say(squeezed(CONTINUE)),)))
        return self._turns

    def _user(self, message: UserMessage) -> None:
        if text := self._shown(message.parts, results=False):
            self._add(Turn("user", (Say(text),)))

    def _reply(self, message: AssistantMessage) -> None:
        parts = tuple(part for raw in message.parts if (part := self._part(raw)) is not None)
        if not any(isinstance(part, Say | Call) for part in parts):
            return
        if not self._turns:
            self._add(Turn("user", (Say(squeezed(EARLIER)),)))
        self._add(Turn("model", parts))
        if message.calls:
            self._calling = message

    def _part(self, part: Text | Reasoning | ToolCall) -> Say | Call | Think | None:
        match part:
            case Text(text=text):
                return Say(squeezed(plain(text))) if text.strip() else None
            case ToolCall(name=name, arguments=arguments):
                named = re.sub("[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"
                return Call(named, plain_json(arguments))
            case Reasoning(sealed=sealed, issuer=issuer):
                own = issuer == self._target.endpoint.issuer
                encodable = sealed is not None and plain_json(sealed) == sealed
                return Think(seal(sealed)) if own and encodable and self._replays else None

    @property
    def _replays(self) -> bool:
        return self._target.profile.replay != "none"

    def _answer(self, result: ToolResult) -> None:
        calls = self._calling.calls if self._calling else ()
        for place, call in enumerate(calls):
            if call.id == result.call_id and place not in self._results:
                self._results[place] = result
                break
        if calls and len(self._results) == len(calls):
            self._settle()

    def _settle(self) -> None:
        """The calls have all their results, or will never have them."""
        if self._calling is not None:
            found = [self._results.get(n) for n in range(len(self._calling.calls))]
            self._add(Turn("tools", tuple(self._result(result) for result in found)))
        said, self._meanwhile = self._meanwhile, []
        self._calling, self._results = None, {}
        for message in said:
            self._user(message)

    def _result(self, result: ToolResult | None) -> Result:
        if result is None:
            return Result(squeezed(UNAVAILABLE), True)
        return Result(self._shown(result.parts, results=True), result.failed)

    def _shown(self, parts: tuple[Text | Image, ...], *, results: bool) -> str:
        return "".join(
            squeezed(plain(part.text)) if isinstance(part, Text) else self._image(part, results)
            for part in parts
        )

    def _image(self, image: Image, in_result: bool) -> str:
        profile = self._target.profile
        seen = profile.images and (profile.image_results or not in_result)
        if seen and image.file != GONE:
            return picture(image.file.encode())
        return squeezed(f"[picture: {image.file}, not shown]")

    def _add(self, turn: Turn) -> None:
        last = self._turns[-1] if self._turns else None
        if last is None or last.who != turn.who or turn.who == "tools":
            self._turns.append(turn)
            return
        # Only the newest of two replies in a row may keep its thoughts.
        kept = tuple(part for part in last.parts if not isinstance(part, Think))
        self._turns[-1] = Turn(turn.who, kept + turn.parts)


def told(messages: tuple[Message, ...], target: Target) -> list[Turn]:
    turns = Listener(target).hear(messages)
    if target.wire == "chat":
        turns = [_in_chat_order(turn) for turn in turns]
    else:
        turns = [_without_last_thoughts(turn) for turn in turns]
    if target.wire != "messages":
        turns = [_without_failures(turn) for turn in turns]
    return [joined(printable(turn) if target.profile.ascii else turn) for turn in turns]


def _in_chat_order(turn: Turn) -> Turn:
    thoughts = tuple(part for part in turn.parts if isinstance(part, Think))[:1]
    words = tuple(part for part in turn.parts if isinstance(part, Say | Result))
    calls = tuple(part for part in turn.parts if isinstance(part, Call))
    return Turn(turn.who, (*thoughts, *words, *calls))


def _without_last_thoughts(turn: Turn) -> Turn:
    parts = list(turn.parts)
    while isinstance(parts[-1], Think):
        parts.pop()
    return Turn(turn.who, tuple(parts))


def _without_failures(turn: Turn) -> Turn:
    parts = (
        part._replace(failed=False) if isinstance(part, Result) else part for part in turn.parts
    )
    return Turn(turn.who, tuple(parts))
