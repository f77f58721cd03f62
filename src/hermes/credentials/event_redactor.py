"""Redacts secrets from the events of a session before they are stored or shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hermes.core.events import (
    Archived,
    CallSettled,
    CapRaised,
    Compacted,
    ControlsChanged,
    DurableEvent,
    EffectDecided,
    InnerCallFinished,
    LiveEvent,
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    Record,
    Rewound,
    SessionOpened,
    Steered,
    ToolFinished,
    ToolIntended,
    ToolProgress,
    ToolStarted,
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

# Events without free text; the opening is redacted when it is built.
_WITHOUT_TEXT = frozenset(
    (
        Archived, CallSettled, CapRaised, ModelCalled, ModelSwitched, Rewound, SessionOpened,
        Steered, ToolStarted, ControlsChanged, TurnStarted, Withdrawn,
    )
)  # fmt: skip
# The text of these was checked a moment ago, as part of a reply or as a result, so that the files
# with secrets are not checked again. Known values are masked in any case.
_CHECKED_BEFORE = frozenset((EffectDecided, InnerCallFinished, ToolFinished, ToolIntended))
# Names of fields with identifiers and fixed texts, which must not change. They are not redacted in
# any event: a new field for free text needs another name.
_FIXED = frozenset(
    (
        "call_id", "category", "cwd", "detail", "file", "id", "issuer", "key", "media_type",
        "model", "name", "origin", "provider",
    )
)  # fmt: skip
_SCALARS = frozenset((bool, float, int, type(None)))
_SECRET_WORDS = ("key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie")
MASKED = (
    "The model gets the secret in your message; the history keeps {labels} instead. "
    "To let commands use a secret by name, save it with `hermes config set NAME VALUE`."
)


def has_own_words(event: DurableEvent) -> TypeGuard[MessageReceived]:
    """Whether the event is a message that a person wrote."""
    return isinstance(event, MessageReceived) and event.message.origin == "user"


class StreamRedactor:
    """Redacts streamed text. Loads nothing for very short texts."""

    def __init__(self, redactor: SecretRedactor) -> None:
        self._redactor = redactor
        self._first = ""
        self._stream: RedactedStream | None = None

    def feed(self, piece: str) -> str:
        if self._stream is not None:
            return self._stream.feed(piece)
        self._first += piece
        if len(self._first) < SHORTEST:
            return ""
        self._stream = self._redactor.stream()
        return self._stream.feed(self._first)

    def close(self) -> str:
        return self._first if self._stream is None else self._stream.close()


class SecretEventRedactor:
    """Masks secrets in events. `again` is for events that were redacted when recorded: only values
    configured now are masked."""

    def __init__(self, redactor: SecretRedactor, *, again: bool = False) -> None:
        self._redactor = redactor
        text = redactor.redact_known if again else redactor.clean
        self._struct = TreeRedactor(redactor, text, _FIXED).struct
        self._typed = TreeRedactor(redactor, redactor.redact_typed, _FIXED).struct
        self._summary = TreeRedactor(redactor, redactor.redact_secrets, _FIXED).struct
        self._streams: dict[str, StreamRedactor] = {}
        self._remarks: list[Notice] = []

    def durable(self, event: DurableEvent) -> DurableEvent:
        if type(event) in _WITHOUT_TEXT:
            if type(event) is ToolStarted:
                self._redactor.load_soon()
            return event
        if type(event) not in _CHECKED_BEFORE:
            self._redactor.refresh()
        if has_own_words(event):
            clean: DurableEvent = self._typed(event)
            if clean is not event:
                self._remark(clean)
        elif isinstance(event, Compacted):
            # Everything else that it quotes was redacted before.
            clean = self._summary(event)
        else:
            clean = self._struct(event)
        if isinstance(event, ToolFinished | InnerCallFinished):
            self._streams.pop(event.result.call_id, None)
        elif isinstance(event, TurnEnded):
            self._streams.clear()
        return clean

    def live(self, event: LiveEvent) -> Iterable[LiveEvent]:
        match event:
            case TextDelta(text=text):
                return self._redact_text("text", text, lambda clean: TextDelta(text=clean))
            case ReasoningDelta(text=text):
                return self._redact_text("thought", text, lambda clean: ReasoningDelta(text=clean))
            case ToolProgress(details=details) if details:
                # A whole state, not a piece of a stream.
                return (self._struct(event),)
            case ToolProgress(call_id=call_id, text=text):
                return self._redact_text(call_id, text, lambda clean: replace(event, text=clean))
            case CallNamed():
                return (*self.rest(), event)
            case Restarted():
                self._streams.clear()
                return (event,)
            case Notice():
                self._redactor.refresh()
                return (self._struct(event),)

    def rest(self) -> Iterable[LiveEvent]:
        found: list[LiveEvent] = []
        if (stream := self._streams.pop("thought", None)) and (text := stream.close()):
            found.append(ReasoningDelta(text=text))
        if (stream := self._streams.pop("text", None)) and (text := stream.close()):
            found.append(TextDelta(text=text))
        return found

    def remarks(self) -> Iterable[LiveEvent]:
        found, self._remarks = self._remarks, []
        return found

    def result(self, result: ToolResult) -> ToolResult:
        self._redactor.refresh()
        return self._struct(result)

    def redact_new_text(self, text: str) -> str:
        """Redact new text that is about to be stored."""
        return self._redactor.text(text)

    def redact_stored(self, value: S) -> S:
        """Redact a value from the journal before it is shown."""
        self._redactor.refresh()
        return self._struct(value)

    def record(self, record: Record) -> Record:
        self._redactor.refresh()
        clean = self._struct(record.event)
        return record if clean is record.event else replace(record, event=clean)

    def lacks(self, call: ToolCall) -> bool:
        return _any_text(call.arguments, LABEL.search)

    def _redact_text(
        self, stream_id: str, text: str, event: Callable[[str], LiveEvent]
    ) -> tuple[LiveEvent, ...]:
        if stream_id not in self._streams:
            self._streams[stream_id] = StreamRedactor(self._redactor)
        clean = self._streams[stream_id].feed(text)
        return (event(clean),) if clean else ()

    def _remark(self, event: Any) -> None:
        labels = dict.fromkeys(LABEL.findall(event.message.text))
        if labels:
            text = MASKED.format(labels=", ".join(labels))
            self._remarks.append(Notice(text=text, kind="warn"))


class TreeRedactor:
    """Redacts all texts in a value with `text`, except in the `fixed` fields. Returns the same
    object if nothing is masked."""

    def __init__(
        self, redactor: SecretRedactor, text: Callable[[str], str], fixed: frozenset[str]
    ) -> None:
        self._redactor = redactor
        self._text = text
        self._fixed = fixed

    def struct(self, value: S) -> S:
        changes: dict[str, Any] = {}
        for name in _text_fields(type(value), self._fixed):
            item = getattr(value, name)
            if (clean := self.clean(item)) is not item:
                changes[name] = clean
        return replace(value, **changes) if changes else value

    def clean(self, value: Any) -> Any:
        if type(value) in _SCALARS:
            return value
        if isinstance(value, str):
            if len(value) < SHORTEST:
                return value
            clean = self._text(value)
            return value if clean == value else clean
        if isinstance(value, Reasoning):
            return self._reasoning(value)
        if isinstance(value, Struct):
            return self.struct(value)
        if isinstance(value, list | tuple):
            items = [self.clean(item) for item in value]
            same = all(a is b for a, b in zip(items, value, strict=True))
            return value if same else type(value)(items)
        if isinstance(value, dict) and value:
            return self._mapping(value)
        return value

    def _mapping(self, value: dict[str, Any]) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        changed = False
        for key, item in value.items():
            named, now = self.clean(key), self.clean(item)
            if now is item and isinstance(item, str):
                now = self._redact_named(key, item)
            changed |= named is not key or now is not item
            clean[named] = now
        return clean if changed else value

    def _redact_named(self, key: str, text: str) -> str:
        """Mask a value that only its name identifies as a secret."""
        if not _names_secret(key):
            return text
        head = f"{key}: "
        clean = self._text(head + text)
        return text if clean == head + text else clean.removeprefix(head)

    def _reasoning(self, reasoning: Reasoning) -> Reasoning:
        """Redact a reasoning block. A sealed block is signed as a whole, so a block with a
        configured value is dropped. Other matches in it are usually ciphertext, unless the
        reasoning text itself contains a secret: many blocks repeat the text."""
        sealed, text = reasoning.sealed, self._text(reasoning.text)
        redact = self._redactor.redact_known if text == reasoning.text else self._text
        if sealed is not None and _any_text(sealed, lambda each: redact(each) != each):
            sealed = None
        if sealed is reasoning.sealed and text == reasoning.text:
            return reasoning
        return replace(reasoning, text=text, sealed=sealed)


@lru_cache(maxsize=256)
def _text_fields(kind: type[Struct], fixed: frozenset[str]) -> tuple[str, ...]:
    """Return the fields that may contain free text."""
    return tuple(name for name in kind.__struct_fields__ if name not in fixed)


@lru_cache(maxsize=1024)
def _names_secret(key: str) -> bool:
    low = key.lower()
    return any(word in low for word in _SECRET_WORDS)


def _any_text(value: Any, is_wanted: Callable[[str], object]) -> bool:
    """Return whether a text in the value, or a name of a mapping, satisfies the condition."""
    if isinstance(value, str):
        return bool(is_wanted(value))
    if isinstance(value, dict):
        return any(_any_text(each, is_wanted) for each in (*value, *value.values()))
    return isinstance(value, list | tuple) and any(_any_text(each, is_wanted) for each in value)
