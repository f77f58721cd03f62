"""Reads the conversation as turns, and turns the last request into steps."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import Value, replace
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.providers.offline.language import available_languages, load_language
from hermes.providers.offline.matching import CHANGING
from hermes.providers.offline.parsing import RequestStep, follow_up, parse_request, with_details
from hermes.providers.offline.slots import looks_like_file

# Nothing refers further back.
MAX_USER_MESSAGES = 40


class ToolRound(Value):
    """The calls of one reply with their results."""

    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]


class DialogueTurn(Value):
    """Consecutive user messages and everything that follows until the next one."""

    user_messages: tuple[UserMessage, ...]
    rounds: tuple[ToolRound, ...] = ()
    answer: str = ""

    @property
    def request(self) -> str:
        """The request, without reports from processes."""
        return "\n".join(
            own_words(each) for each in self.user_messages if not is_notice(each)
        ).strip()


def own_words(message: UserMessage) -> str:
    """Without the parts that memory and hooks add for models."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "".join(text for n, text in enumerate(texts) if not n or not text.startswith("\n\n"))


def is_notice(message: UserMessage) -> bool:
    """A report of a background process, not a user message."""
    return message.origin.startswith("process")


def is_aside(message: UserMessage) -> bool:
    """A message from Hermes itself, not a request."""
    return message.origin == "hermes"


def dialogue_turns(messages: Sequence[Message]) -> tuple[DialogueTurn, ...]:
    """The newest exchanges, oldest first, so that a long conversation costs no more than a short
    one. Messages before the first user message are dropped."""
    found: list[DialogueTurn] = []
    said: list[UserMessage] = []
    rounds: list[ToolRound] = []
    calls: tuple[ToolCall, ...] = ()
    answer = ""
    answered = False
    for message in messages[_start(messages) :]:
        match message:
            case UserMessage() if is_aside(message):
                continue
            case UserMessage():
                if said and answered:
                    found.append(
                        DialogueTurn(user_messages=tuple(said), rounds=tuple(rounds), answer=answer)
                    )
                    said, rounds, calls, answer = [], [], (), ""
                said.append(message)
                answered = False
            case AssistantMessage():
                answer, calls, answered = message.text or answer, message.calls, True
            case ToolMessage(results=results):
                rounds.append(ToolRound(calls=calls, results=results))
                calls = ()
    if said:
        found.append(DialogueTurn(user_messages=tuple(said), rounds=tuple(rounds), answer=answer))
    return tuple(found)


def _start(messages: Sequence[Message]) -> int:
    """The position of the oldest user message that still counts."""
    left = MAX_USER_MESSAGES
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and not is_aside(message):
            left -= 1
            if not left:
                return index
    return 0


MAX_LOOK_BACK = 20
MAX_FOLLOWED = 4
# The score needed in a language that was not chosen: a single short word is no proof.
SURE_IN_OTHER_LANGUAGE = 3.5

# Kinds about the conversation itself: "again" does not mean them.
_ABOUT_TALK = frozenset({"talk"})
_DEPENDENT = frozenset({"again", "same_for"})


class ParsedRequest(Value):
    """The requested steps and their language. Without steps it was not understood."""

    text: str
    language: str
    steps: tuple[RequestStep, ...] = ()


def read_request(code: str, exchanges: tuple[DialogueTurn, ...]) -> ParsedRequest:
    """The request of the newest exchange. "Again" and "the same for …" are replaced by the steps
    they refer to."""
    text = exchanges[-1].request
    newest = _understand(code, text)
    if not _is_dependent(newest):
        return _in_context(newest, code, exchanges[:-1])
    pending = [newest.steps[0]]
    for exchange in exchanges[-2 : -2 - MAX_LOOK_BACK : -1]:
        earlier = _understand(code, exchange.request)
        if _is_dependent(earlier):
            pending.append(earlier.steps[0])
        elif not _is_talk(earlier):
            steps = earlier.steps
            if any(_changes(earlier.language, step) for step in steps) and _is_vague(pending[0]):
                return replace(newest, steps=())
            for step in reversed(pending):
                steps = _repeat(step, steps)
            return replace(newest, language=earlier.language, steps=steps)
    nothing = RequestStep(kind="nothing_before", words=newest.text)
    return replace(newest, steps=(nothing,))


def _in_context(
    newest: ParsedRequest, code: str, before: tuple[DialogueTurn, ...]
) -> ParsedRequest:
    """What the request means after an earlier one, if it says more in that context."""
    if not before or (newest.steps and not _changes_files(newest)):
        return newest
    following = follow_up(load_language(code), newest.text)
    if newest.steps and following is None:
        return newest
    for exchange in before[: -1 - MAX_FOLLOWED : -1]:
        earlier = _understand(code, exchange.request)
        if not _is_talk(earlier):
            step = following if following and _of_one_sort(code, following, earlier) else None
            if step is None and not newest.steps and not _changes_files(earlier):
                step = with_details(load_language(earlier.language), newest.text, earlier.steps[-1])
            return replace(newest, language=earlier.language, steps=(step,)) if step else newest
    return newest


def _changes_files(request: ParsedRequest) -> bool:
    """True for a request like "remove milk", which may be about a file or about the list just
    shown."""
    return len(request.steps) == 1 and _changes(request.language, request.steps[0])


def _changes(code: str, step: RequestStep) -> bool:
    kind = load_language(code).kinds.get(step.kind)
    return kind is not None and kind.group == CHANGING


def _is_vague(wish: RequestStep) -> bool:
    """ "And Anna?" after "delete a.txt" is about something else."""
    path = wish.slots.get("path", "")
    return bool(path) and "/" not in path and not looks_like_file(path)


def _of_one_sort(code: str, following: RequestStep, earlier: ParsedRequest) -> bool:
    kinds = load_language(code).kinds
    kind = kinds.get(earlier.steps[-1].kind)
    return kind is not None and bool(kind.follows) and kind.group == kinds[following.kind].group


def _is_dependent(request: ParsedRequest) -> bool:
    """True if it means something only together with an earlier request."""
    return len(request.steps) == 1 and request.steps[0].kind in _DEPENDENT


def _understand(code: str, text: str) -> ParsedRequest:
    steps = parse_request(load_language(code), text)
    if steps:
        return ParsedRequest(text=text, language=code, steps=steps)
    for other in available_languages():
        if other != code:
            steps = parse_request(load_language(other), text)
            if steps and min(step.sure for step in steps) >= SURE_IN_OTHER_LANGUAGE:
                return ParsedRequest(text=text, language=other, steps=steps)
    return ParsedRequest(text=text, language=code)


def _is_talk(request: ParsedRequest) -> bool:
    """True if there is nothing to repeat: not understood, or about the conversation itself."""
    kinds = load_language(request.language).kinds
    return not any(
        step.kind not in kinds or kinds[step.kind].group not in _ABOUT_TALK
        for step in request.steps
    )


def _repeat(change: RequestStep, steps: tuple[RequestStep, ...]) -> tuple[RequestStep, ...]:
    if change.kind == "again":
        return steps
    if not any("path" in step.slots or "path" in step.references for step in steps):
        return (*steps[:-1], _with_path(steps[-1], change))
    return tuple(
        _with_path(step, change) if "path" in step.slots or "path" in step.references else step
        for step in steps
    )


def _with_path(step: RequestStep, change: RequestStep) -> RequestStep:
    """The step with the path of `change`."""
    slots = {name: value for name, value in step.slots.items() if name != "path"}
    references = {name: value for name, value in step.references.items() if name != "path"}
    if "path" in change.slots:
        slots["path"] = change.slots["path"]
    if "path" in change.references:
        references["path"] = change.references["path"]
    return replace(step, slots=slots, references=references)
