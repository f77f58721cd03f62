"""The veil of a session: takes secrets out of its events, whatever kind they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hermes.core.events import (
    Archived,
    CallSettled,
    CapRaised,
    DurableEvent,
    LiveEvent,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    Record,
    Rewound,
    SessionOpened,
    Steered,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    Tuned,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hermes.core.messages import Reasoning, ToolCall, ToolResult
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta
from hermes.core.secrets import LABEL
from hermes.credentials.redaction import SHORTEST, SecretRedactor

if TYPE_CHECKING:
    from hermes.policy.redact.redactor import RedactedStream

S = TypeVar("S", bound=Struct)

# These say nothing that somebody else has worded, or, the opening, were cleaned when made.
_BARE = frozenset(
    (
        Archived,
        CallSettled,
        CapRaised,
        ModelCalled,
        ModelSwitched,
        Rewound,
        SessionOpened,
        Steered,
        ToolStarted,
        Tuned,
        TurnStarted,
        Withdrawn,
    )
)
# Names and places by which things are found again, and words of our own.
_FIXED = frozenset(
    (
        "call_id",
        "category",
        "cwd",
        "detail",
        "file",
        "id",
        "issuer",
        "key",
        "media_type",
        "model",
        "name",
        "origin",
        "provider",
    )
)
_WORDLESS = frozenset((bool, float, int, type(None)))
_NAMING = ("key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie")
MASKED = (
    "A secret in your message was replaced by {labels}: neither the model nor the history gets it. "
    "To let commands use a secret by its name, keep it with `hermes config set NAME VALUE`."
)


class StreamRedactor:
    """What somebody says piece by piece. Nothing is loaded for a word or two."""

    def __init__(self, secrecy: SecretRedactor) -> None:
        self._secrecy = secrecy
        self._first = ""
        self._stream: RedactedStream | None = None

    def feed(self, piece: str) -> str:
        if self._stream is not None:
            return self._stream.feed(piece)
        self._first += piece
        if len(self._first) < SHORTEST:
            return ""
        self._stream = self._secrecy.stream()
        return self._stream.feed(self._first)

    def close(self) -> str:
        return self._first if self._stream is None else self._stream.close()


class SecretEventRedactor:
    """With `again`, for what was veiled when it was recorded: only values that are configured now
    are looked for."""

    def __init__(self, secrecy: SecretRedactor, *, again: bool = False) -> None:
        self._secrecy = secrecy
        self._text = secrecy.known if again else secrecy.clean
        self._speaking: dict[str, StreamRedactor] = {}
        self._remarks: list[Notice] = []

    def durable(self, event: DurableEvent) -> DurableEvent:
        if type(event) in _BARE:
            return event
        self._secrecy.refresh()
        clean = self._struct(event)
        if isinstance(event, MessageReceived) and clean is not event:
            self._remark(clean)
        if isinstance(event, ToolFinished):
            self._speaking.pop(event.result.call_id, None)
        elif isinstance(event, TurnEnded):
            self._speaking.clear()
        return clean

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        match event:
            case TextDelta(text=text):
                return self._redact_text("text", text, lambda said: TextDelta(text=said))
            case ReasoningDelta(text=text):
                return self._redact_text("thought", text, lambda said: ReasoningDelta(text=said))
            case ToolProgress(call_id=call_id, text=text):
                return self._redact_text(call_id, text, lambda said: replace(event, text=said))
            case CallNamed():
                return (*self.rest(), event)
            case Restarted():
                self._speaking.clear()
                return (event,)
            case Notice():
                self._secrecy.refresh()
                return (self._struct(event),)

    def rest(self) -> Iterable[LiveEvent]:
        found: list[LiveEvent] = []
        if (thought := self._speaking.pop("thought", None)) and (words := thought.close()):
            found.append(ReasoningDelta(text=words))
        if (said := self._speaking.pop("text", None)) and (words := said.close()):
            found.append(TextDelta(text=words))
        return found

    def remarks(self) -> Iterable[LiveEvent]:
        found, self._remarks = self._remarks, []
        return found

    def result(self, result: ToolResult) -> ToolResult:
        self._secrecy.refresh()
        return self._struct(result)

    def words(self, text: str) -> str:
        """Something new that is about to be kept."""
        return self._secrecy.text(text)

    def seen(self, value: S) -> S:
        """Something out of the journal, to be shown."""
        self._secrecy.refresh()
        return self._struct(value)

    def record(self, record: Record) -> Record:
        self._secrecy.refresh()
        clean = self._struct(record.event)
        return record if clean is record.event else replace(record, event=clean)

    def lacks(self, call: ToolCall) -> bool:
        return _holds_label(call.arguments)

    def _redact_text(
        self, who: str, text: str, event: Callable[[str], LiveEvent]
    ) -> tuple[LiveEvent, ...]:
        if who not in self._speaking:
            self._speaking[who] = StreamRedactor(self._secrecy)
        shown = self._speaking[who].feed(text)
        return (event(shown),) if shown else ()

    def _remark(self, event: Any) -> None:
        labels = dict.fromkeys(LABEL.findall(event.message.text))
        if labels:
            words = MASKED.format(labels=", ".join(labels))
            self._remarks.append(Notice(text=words, kind="warn"))

    def _struct(self, value: S) -> S:
        changes: dict[str, Any] = {}
        for name in _has_text(type(value)):
            held = getattr(value, name)
            if (clean := self._clean(held)) is not held:
                changes[name] = clean
        return replace(value, **changes) if changes else value

    def _clean(self, value: Any) -> Any:
        """The same object where nothing is to be hidden."""
        if type(value) in _WORDLESS:
            return value
        if isinstance(value, str):
            if len(value) < SHORTEST:
                return value
            clean = self._text(value)
            return value if clean == value else clean
        if isinstance(value, Reasoning):
            return self._reasoning(value)
        if isinstance(value, Struct):
            return self._struct(value)
        if isinstance(value, list | tuple):
            items = [self._clean(item) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else type(value)(items)
        if isinstance(value, dict) and value:
            return self._mapping(value)
        return value

    def _mapping(self, value: dict[str, Any]) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        changed = False
        for key, held in value.items():
            named, now = self._clean(key), self._clean(held)
            if now is held and isinstance(held, str):
                now = self._redact_named(key, held)
            changed |= named is not key or now is not held
            clean[named] = now
        return clean if changed else value

    def _redact_named(self, key: str, text: str) -> str:
        """A value that only its name gives away."""
        if not _is_naming(key):
            return text
        head = f"{key}: "
        clean = self._text(head + text)
        return text if clean == head + text else clean.removeprefix(head)

    def _reasoning(self, thought: Reasoning) -> Reasoning:
        """A sealed block is signed as a whole, so one with a configured value in it goes. What
        else looks like a secret in it is mostly its own cipher, unless the thought itself holds
        one: many blocks say the thought again."""
        sealed, text = thought.sealed, self._text(thought.text)
        hides = self._secrecy.known if text == thought.text else self._text
        if sealed is not None and _mentions(sealed, hides):
            sealed = None
        if sealed is thought.sealed and text == thought.text:
            return thought
        return replace(thought, text=text, sealed=sealed)


@lru_cache(maxsize=256)
def _has_text(kind: type[Struct]) -> tuple[str, ...]:
    """The fields that may hold what somebody has worded."""
    return tuple(name for name in kind.__struct_fields__ if name not in _FIXED)


@lru_cache(maxsize=1024)
def _is_naming(key: str) -> bool:
    low = key.lower()
    return any(word in low for word in _NAMING)


def _mentions(value: Any, clean: Callable[[str], str]) -> bool:
    if isinstance(value, str):
        return clean(value) != value
    if isinstance(value, dict):
        return any(_mentions(each, clean) for each in (*value, *value.values()))
    return isinstance(value, list | tuple) and any(_mentions(each, clean) for each in value)


def _holds_label(value: Any) -> bool:
    if isinstance(value, str):
        return LABEL.search(value) is not None
    if isinstance(value, dict):
        return any(_holds_label(each) for each in (*value, *value.values()))
    return isinstance(value, list | tuple) and any(_holds_label(each) for each in value)
