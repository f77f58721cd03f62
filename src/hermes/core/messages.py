"""Messages of a conversation, their parts, token usage, and which text came from whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from hermes.codec.values import JsonObject, Value


class Text(Value, tag="text"):
    text: str


class Image(Value, tag="image"):
    """A picture by reference: `file` is a path in the image cache, never inline data."""

    file: str
    media_type: str


class Reasoning(Value, tag="reasoning"):
    """A model's reasoning. `sealed` is the provider's own block; it is sent back unchanged to
    `issuer` and to no one else."""

    text: str = ""
    sealed: JsonObject | None = None
    issuer: str = ""


class ToolCall(Value, tag="tool_call"):
    """A tool call requested by the model. `broken` says why its arguments cannot be used; such a
    call gets that text as its result and never runs."""

    id: str
    name: str
    arguments: JsonObject = {}
    broken: str = ""


Denial = Literal["policy", "person", "unattended", "timeout"]
# Why a call failed, where that decides what comes next: its arguments cannot be used; it may have
# run; it did not begin; the same call may succeed later.
Failure = Literal["invalid", "unknown", "skipped", "transient"]
"""Who or what denied a call: the policy, a person, the absence of one, or an expired question."""

StopReason = Literal["done", "calls", "length", "filtered", "cut", "interrupted"]
"""Why a reply ended. "cut" is a lost connection; "interrupted" is a person's stop, and the reply
then holds the text shown until that moment, without calls."""


class UserMessage(Value, tag="user"):
    """A message from outside the model. `origin` is "user" or the name of another source
    ("process:proc_1")."""

    parts: tuple[Text | Image, ...]
    origin: str = "user"

    @property
    def text(self) -> str:
        return joined_text(self.parts)


class AssistantMessage(Value, tag="assistant"):
    parts: tuple[Text | Reasoning | ToolCall, ...]
    stop: StopReason = "done"

    @property
    def text(self) -> str:
        return joined_text(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def reasoning(self) -> str:
        return "\n".join(p.text for p in self.parts if isinstance(p, Reasoning) and p.text)


class ToolResult(Value, tag="tool_result"):
    """The result of one call: `parts` for the model, `details` for displays and later calls.
    `origin` is the source of the content, for the policy. `denied` is set when the call failed
    because an effect was not allowed."""

    call_id: str
    name: str
    parts: tuple[Text | Image, ...]
    failed: bool = False
    origin: str = "workspace"
    details: JsonObject = {}
    denied: Denial | None = None
    failure: Failure | None = None

    @property
    def text(self) -> str:
        return joined_text(self.parts)


class ToolMessage(Value, tag="tool"):
    """The results of all calls of the preceding assistant message, in the order of the calls."""

    results: tuple[ToolResult, ...]


Message = UserMessage | AssistantMessage | ToolMessage


class Usage(Value):
    """Tokens of one or more model calls. The prompt is input + cache_read + cache_write. `cost` is
    in US dollars, None when the price is unknown."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    requests: int = 0
    cost: float | None = None
    estimated: bool = False

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            requests=self.requests + other.requests,
            cost=sum(costs) if costs else None,
            estimated=self.estimated or other.estimated,
        )


def joined_text(parts: tuple[object, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def user_says(text: str, *images: Image, origin: str = "user") -> UserMessage:
    """A user message with this text. Lone surrogates cannot be stored or sent, so they are
    replaced."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return UserMessage(parts=(Text(text=clean), *images), origin=origin)


PERSON = "user"
# The line between what the person typed and the files that they attached.
ATTACHED = "--- Attached Context ---"
# Fenced files and the lines of folders; a fence is longer than all others in its text.
_CONTENTS = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$|^ *- [^\n]*$", re.DOTALL | re.MULTILINE)
# How origins of text from files and commands begin; what follows names the file or program.
WORKSPACE = "workspace:"
# Separates the sources of a text that has several.
_AND = ", "
# Characters that continue a URL or a name, so that a part is not taken for the whole.
_MORE = r"[\w/?=&%#+~@-]"


def split_origins(origins: Iterable[str]) -> frozenset[str]:
    """Return every single source. Sources of sources would otherwise repeat each other without
    end."""
    return frozenset(source for each in origins for source in each.split(_AND))


class InView:
    """A `ConversationText` over the messages of a session; each lookup sees the newest messages."""

    def __init__(self, messages: Callable[[], Iterable[Message]]) -> None:
        self._messages = messages

    def user_wrote(self, text: str) -> bool:
        pattern = re.compile(rf"(?<![\w@.-]){re.escape(text)}(?![\w-]|\.\w)", re.IGNORECASE)
        return any(pattern.search(words) for words in self._of_the_person())

    def occurs(self, text: str) -> bool:
        pattern = _whole_pattern(text)
        everything = (*self._of_the_person(), *self._of_others())
        return any(pattern.search(words) for words in everything)

    def in_results(self, text: str, origin: str = "") -> bool:
        return any(text in words for words in self._of_others(origin))

    def user_matches(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(words) for words in self._of_the_person())

    def results_match(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(words) for words in self._of_others())

    def _of_the_person(self) -> Iterator[str]:
        for message in self._messages():
            if isinstance(message, UserMessage) and message.origin == PERSON:
                yield _typed(message.text)

    def _of_others(self, origin: str = "") -> Iterator[str]:
        for message in self._messages():
            match message:
                case UserMessage(origin="user") if not origin:
                    yield message.text.partition(ATTACHED)[2]
                case UserMessage() if message.origin != PERSON and origin in ("", message.origin):
                    yield message.text
                case ToolMessage(results=results):
                    yield from (r.text for r in results if origin in ("", r.origin))
                case UserMessage() | AssistantMessage():
                    continue


def _typed(text: str) -> str:
    """What the person typed, with the names of attached files but without their contents."""
    typed, mark, attached = text.partition(ATTACHED)
    return f"{typed}\n{_CONTENTS.sub('', attached)}" if mark else typed


def _whole_pattern(text: str) -> re.Pattern[str]:
    """The text on its own, neither the beginning nor the end of something longer."""
    ending = rf"(?!{_MORE})(?!\.{_MORE})"
    return re.compile(rf"(?<!{_MORE})(?<!{_MORE}\.){re.escape(text)}{ending}", re.IGNORECASE)
