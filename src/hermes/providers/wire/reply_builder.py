"""Builds a reply from streamed fragments: deltas immediately, one message at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.core.messages import AssistantMessage, Reasoning, StopReason, Text, ToolCall
from hermes.core.prompt import CallNamed, Delta, ReasoningDelta, Restarted, TextDelta
from hermes.providers.normalization import clean_json, clean_text, fresh_id
from hermes.providers.wire.reasoning_tags import ReasoningSplitter, SplitPiece

# Why a call cannot run, for the model.
INCOMPLETE = "the reply ended before the arguments were complete"
CONNECTION_LOST = "the connection was lost before the reply was complete"
_MAX_SHOWN_CHARS = 500
_FENCE = re.compile(r"^```[a-z]*\s*\n?(.*?)\s*```$", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)


class Arguments(Value):
    """The decoded arguments of a call."""

    value: JsonObject = {}
    broken: str = ""  # tells the model why the call cannot run; "" if it can


def read_arguments(raw: object, *, whole: bool) -> Arguments:
    """Parse the arguments of a call. With `whole=False` the reply was cut off: nothing is repaired,
    and empty arguments count as incomplete."""
    if isinstance(raw, dict):
        return Arguments(value=clean_json(raw)) if whole else _broken(str(raw), whole=False)
    text = raw if isinstance(raw, str) else ""
    stripped = text.strip()
    if not stripped or stripped == "null":
        return Arguments() if whole else _broken(text, whole=False)
    value = _parse_strict(stripped)
    if value is None and whole:
        value = _repair(stripped)
    if isinstance(value, str) and whole:
        value = _parse_strict(value.strip())
    if isinstance(value, dict):
        return Arguments(value=clean_json(value))
    return _broken(text, whole=whole)


def _parse_strict(text: str) -> JsonValue:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _repair(text: str) -> JsonValue:
    """Parse an object inside a code fence, with raw line breaks in strings, with trailing commas,
    or followed by text that is not a second object. A missing end is never added."""
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    value = _first_object(text)
    if value is None:
        commas_dropped = _STRING_OR_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        value = _first_object(commas_dropped)
    return value


def _first_object(text: str) -> JsonValue:
    try:
        value, end = _LENIENT.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    rest = text[end:].strip()
    if not isinstance(value, dict):
        return value if not rest else None
    if rest.startswith("{"):
        return value if _first_object(rest) == value else None
    return value


def _broken(raw: str, *, whole: bool) -> Arguments:
    shown = clean_text(raw if len(raw) <= _MAX_SHOWN_CHARS else raw[:_MAX_SHOWN_CHARS] + "…")
    why = "the arguments are not a valid JSON object" if whole else INCOMPLETE
    return Arguments(broken=f"{why}: {shown}" if shown else why)


class TextBuilder:
    """Visible text in fragments."""

    def __init__(self) -> None:
        self.pieces: list[str] = []


class ReasoningBuilder:
    """Reasoning in fragments, plus the provider's opaque block."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.sealed: JsonObject | None = None


class CallBuilder:
    """A tool call in fragments."""

    def __init__(self, id: str = "", name: str = "") -> None:
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        self.size = 0
        self.received = 0  # characters, with those that were sent again
        self.parsed_arguments: JsonObject | None = None  # arguments that arrived as an object
        self._all_pieces: list[str] = []
        self.announced = False
        # It may be an echo of the previous call, and counts only if arguments follow.
        self.doubtful = False

    def append(self, piece: str) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        self.received += len(piece)
        if self._all_pieces:
            self._all_pieces.append(piece)

    def replace(self, text: str) -> None:
        """Handle a fragment that appears to resend all arguments."""
        self._all_pieces = [*(self._all_pieces or self.pieces), text]
        self.pieces = [text]
        self.size = len(text)
        self.received += len(text)

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    @property
    def arguments(self) -> JsonObject | str:
        """The arguments as an object or as text. A nested object may begin like the outer one, so
        if only all fragments together parse as an object, none was a resend."""
        if self.parsed_arguments is not None:
            return self.parsed_arguments
        plain = "".join(self._all_pieces)
        if plain and _is_object(plain) and not _is_object(self.raw):
            return plain
        return self.raw

    @property
    def is_echo(self) -> bool:
        return self.doubtful and not self.size and self.parsed_arguments is None


def _is_object(text: str) -> bool:
    return isinstance(_parse_strict(text), dict)


class ReplyBuilder:
    """Assembles a reply from its parts. `used_ids` are the call ids of the conversation so far,
    `message_count` is its length; ids that the model left out are derived from both."""

    def __init__(self, *, issuer: str, used_ids: set[str], message_count: int) -> None:
        self.parts: list[TextBuilder | ReasoningBuilder | CallBuilder] = []
        self._issuer = issuer
        self._used_ids = used_ids
        self._message_count = message_count
        self._splitter = ReasoningSplitter()
        self._half = ""
        self._size = 0
        self._new_ids: set[str] = set()

    @property
    def size(self) -> int:
        """The characters of text, reasoning and arguments so far."""
        return self._size + sum(call.received for call in self.calls)

    @property
    def has_visible_output(self) -> bool:
        """Text or a call was already shown."""
        return any(
            isinstance(part, CallBuilder) or (isinstance(part, TextBuilder) and part.pieces)
            for part in self.parts
        )

    @property
    def calls(self) -> list[CallBuilder]:
        return [part for part in self.parts if isinstance(part, CallBuilder)]

    def add_text(self, text: str) -> Iterator[Delta]:
        """Add visible text; inline reasoning in it is split off."""
        self._size += len(text)
        text = self._half + text
        # The first half of a surrogate pair waits for the second half in the next event.
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        whole = clean_text(text[:-1] if self._half else text)
        for piece in self._splitter.feed(whole):
            yield from self._split(piece)

    def add_reasoning(self, text: str) -> Iterator[Delta]:
        if text:
            text = clean_text(text)
            self._size += len(text)
            self.open_reasoning().pieces.append(text)
            yield ReasoningDelta(text=text)

    def open_reasoning(self) -> ReasoningBuilder:
        """Return the reasoning part at the end; a new one if the last part is something else or
        sealed."""
        last = self.parts[-1] if self.parts else None
        if isinstance(last, ReasoningBuilder) and last.sealed is None:
            return last
        return self.add_reasoning_part()

    def add_reasoning_part(self) -> ReasoningBuilder:
        self.parts.append(part := ReasoningBuilder())
        return part

    def first_reasoning(self) -> ReasoningBuilder:
        """Return the first reasoning part, created if missing."""
        for part in self.parts:
            if isinstance(part, ReasoningBuilder):
                return part
        self.parts.insert(0, part := ReasoningBuilder())
        return part

    def add_call(self, id: str = "", name: str = "") -> CallBuilder:
        call = CallBuilder(id, name)
        self.parts.append(call)
        return call

    def announce(self, call: CallBuilder) -> Iterator[Delta]:
        """Announce the tool name once."""
        if call.name and not call.announced:
            call.announced = True
            yield CallNamed(name=clean_text(call.name))

    def flush(self) -> Iterator[Delta]:
        """End a run of visible text and emit the held-back text."""
        if self._half:
            self._half = ""
            yield from self.add_text("\ufffd")
        for piece in self._splitter.finish():
            yield from self._split(piece)

    def finish(self) -> Iterator[Delta]:
        """End the reply and emit the held-back text."""
        yield from self.flush()
        self.parts = [p for p in self.parts if not (isinstance(p, CallBuilder) and p.is_echo)]
        for call in self.calls:
            yield from self.announce(call)

    def message(self, stop: StopReason) -> AssistantMessage:
        """Return the whole reply. After "length" and "cut", incomplete calls are marked as
        broken."""
        self._new_ids = set(self._used_ids)
        parts = [part for raw in self.parts if (part := self._part(raw, stop)) is not None]
        calls = any(isinstance(part, ToolCall) for part in parts)
        if calls and stop == "done":
            stop = "calls"
        elif not calls and stop == "calls":
            stop = "done"
        return AssistantMessage(parts=tuple(parts), stop=stop)

    def _split(self, piece: SplitPiece) -> Iterator[Delta]:
        if piece.kind == "reasoning":
            yield from self.add_reasoning(piece.text)
        elif piece.kind == "text":
            last = self.parts[-1] if self.parts else None
            if not isinstance(last, TextBuilder):
                self.parts.append(last := TextBuilder())
            last.pieces.append(piece.text)
            yield TextDelta(text=piece.text)
        else:
            text = "".join("".join(p.pieces) for p in self.parts if isinstance(p, TextBuilder))
            if text:
                self.parts = [part for part in self.parts if not isinstance(part, TextBuilder)]
                yield Restarted()
                yield from self.add_reasoning(text)

    def _part(
        self, raw: TextBuilder | ReasoningBuilder | CallBuilder, stop: StopReason
    ) -> Text | Reasoning | ToolCall | None:
        if isinstance(raw, CallBuilder):
            return self._call(raw, stop)
        text = "".join(raw.pieces)
        if isinstance(raw, TextBuilder):
            return Text(text=text) if text.strip() else None
        if not text and raw.sealed is None:
            return None
        issuer = self._issuer if raw.sealed is not None else ""
        return Reasoning(text=text, sealed=raw.sealed, issuer=issuer)

    def _call(self, call: CallBuilder, stop: StopReason) -> ToolCall:
        parsed = read_arguments(call.arguments, whole=stop not in ("length", "cut"))
        broken = parsed.broken
        if stop == "cut" and not broken:
            broken = CONNECTION_LOST
        arguments = {} if broken else parsed.value
        made = len(self._new_ids) - len(self._used_ids)
        id = fresh_id(call.id or f"call_{self._message_count}_{made}", self._new_ids)
        self._new_ids.add(id)
        name = clean_text(call.name).strip()
        return ToolCall(id=id, name=name, arguments=arguments, broken=broken)
