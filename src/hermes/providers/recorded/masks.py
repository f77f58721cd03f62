"""Masks secrets in recordings at the same length, so that sizes stay valid. In model output,
secrets are replaced by the labels that the session shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonValue
from hermes.providers.normalization import ascii_json

SHORTEST = 8
# One per UTF-8 length of a character.
MARKS = {1: "*", 2: "×", 3: "※", 4: "𝄪"}


# Fields of the wire formats with model output or error text.
_TEXT_FIELDS = (
    "content", "text", "thinking", "arguments", "partial_json", "reasoning", "refusal", "delta",
    "reasoning_content", "message", "summary", "error", "detail",
)  # fmt: skip


# A secret in a text: start, end, and the label that the session shows.
SecretSpan = tuple[int, int, str]
FindSecrets = Callable[[str], Iterable[SecretSpan]]


class SecretMask:
    """Masks secret values, also in their JSON and URL spellings. `marks` finds everything in model
    output that the session does not show. `typed` maps messages, which a model gets as a person
    typed them, to what the journal holds; it may grow."""

    def __init__(
        self,
        values: Iterable[str],
        marks: FindSecrets | None = None,
        typed: Mapping[str, str] | None = None,
    ) -> None:
        self._marks = marks
        self._typed = {} if typed is None else typed
        known = sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)
        # A mask is as long as its value, because sizes decide what is offloaded and what a call may
        # cost.
        self._texts = [(value, _mask(value)) for value in known]
        self._bytes = [
            pair
            for value, mask in self._texts
            for pair in dict(zip(_forms(value), _forms(mask), strict=True)).items()
        ]

    @property
    def longest(self) -> int:
        return max((len(form) for form, _ in (*self._typed_forms(), *self._bytes)), default=0)

    def text(self, text: str) -> str:
        for value, mask in self._texts:
            if value in text:
                text = text.replace(value, mask)
        return text

    def data(self, data: bytes) -> tuple[bytes, int]:
        """Return the bytes without secrets, and how many were found."""
        count = 0
        for form, mask in (*self._typed_forms(), *self._bytes):
            if found := data.count(form):
                count += found
                data = data.replace(form, mask)
        return data, count

    def answer(self, answer: bytes) -> tuple[bytes, int]:
        """Replace the secrets in a model response by the labels that the session shows, and count
        them. The response is an event stream or one JSON document."""
        return _rewrite(answer, self._label) if self._marks is not None else (answer, 0)

    def occurs_in(self, data: bytes) -> bool:
        """Return whether any secret occurs in the bytes."""
        return any(form in data for form, _ in (*self._typed_forms(), *self._bytes))

    def _typed_forms(self) -> Iterator[tuple[bytes, bytes]]:
        for text, clean in self._typed.items():
            yield from dict(zip(_forms(text), _forms(clean), strict=True)).items()

    def json(self, value: JsonValue) -> JsonValue:
        """Return the same JSON with every string masked, including keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        return value

    def stream(self, answer: bytes) -> tuple[bytes, int]:
        """Mask secrets that are spread over several events of a stream. Events without a finding
        keep their bytes."""
        spread = self._texts and _is_stream(answer)
        return _rewrite(answer, self._mask_joined) if spread else (answer, 0)

    def _mask_joined(self, slots: list[_StringSlot]) -> int:
        """Mask the joined strings, then split the result into the original strings."""
        whole = "".join(slot.text for slot in slots)
        masked = self.text(whole)
        if masked == whole:
            return 0
        at = 0
        for slot in slots:
            slot.set(masked[at : at + len(slot.text)])
            at += len(slot.text)
        return 1

    def _label(self, slots: list[_StringSlot]) -> int:
        assert self._marks is not None
        if slots[0].name.rpartition(".")[2] not in _TEXT_FIELDS:
            return 0
        marks = list(self._marks("".join(slot.text for slot in slots)))
        at = 0
        for slot in slots if marks else ():
            text = slot.text
            slot.set(_insert_labels(text, at, marks))
            at += len(text)
        return len(marks)


def _insert_labels(text: str, at: int, marks: Iterable[SecretSpan]) -> str:
    """Replace the secrets in `text` by labels. `text` begins at offset `at` of the text that
    `marks` refer to; a label goes where its secret starts."""
    parts, done = [], 0
    for first, last, label in marks:
        start, end = first - at, last - at
        if end <= 0 or start >= len(text):
            continue
        parts.append(text[done : max(start, 0)])
        if start >= 0:
            parts.append(label)
        done = min(end, len(text))
    return "".join((*parts, text[done:]))


class _Block:
    """One event of a stream: the JSON of its data and the other lines; with `bare`, a whole
    response that is not a stream."""

    def __init__(self, raw: bytes, *, bare: bool = False) -> None:
        self._raw = raw
        self._bare = bare
        lines = raw.split(b"\n")
        data_lines = [line[5:].lstrip() for line in lines if line.startswith(b"data:")]
        if bare:
            data_lines = [raw]
        self._others = [line for line in lines if not line.startswith(b"data:")]
        try:
            self.value: JsonValue = decode(object, b"\n".join(data_lines)) if data_lines else None
        except DecodeError:
            self.value = None
        self._before = encode(self.value)

    def data(self) -> bytes:
        now = encode(self.value)
        if now == self._before:
            return self._raw
        if self._bare:
            return now
        return b"\n".join((*self._others, b"data: " + now))


class _StringSlot:
    """A replaceable string inside a JSON value."""

    def __init__(self, name: str, holder: JsonValue, key: str | int) -> None:
        self.name = name
        self._holder = holder
        self._key = key

    @property
    def text(self) -> str:
        return str(self._holder[self._key])

    def set(self, text: str) -> None:
        self._holder[self._key] = text


def _is_stream(answer: bytes) -> bool:
    return answer.lstrip().startswith((b"data:", b"event:", b":"))


def _rewrite(answer: bytes, change: Callable[[list[_StringSlot]], int]) -> tuple[bytes, int]:
    """Apply `change` to each group of strings that may together form one text; `change` returns the
    number of its findings."""
    is_stream = _is_stream(answer)
    parts = answer.replace(b"\r\n", b"\n").split(b"\n\n") if is_stream else [answer]
    blocks = [_Block(part, bare=not is_stream) for part in parts]
    strings: dict[str, list[_StringSlot]] = {}
    for block in blocks:
        for slot in _slots(block.value, ""):
            strings.setdefault(slot.name, []).append(slot)
    count = sum(change(slots) for slots in strings.values())
    return (b"\n\n".join(block.data() for block in blocks), count) if count else (answer, 0)


def _slots(value: JsonValue, name: str) -> Iterator[_StringSlot]:
    items: Iterable[tuple[str | int, JsonValue]] = ()
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        if isinstance(item, str):
            yield _StringSlot(f"{name}.{key}", value, key)
        else:
            yield from _slots(item, f"{name}.{key}")


def _mask(value: str) -> str:
    return "".join(MARKS[len(letter.encode("utf-8", "surrogatepass"))] for letter in value)


def _forms(value: str) -> tuple[bytes, ...]:
    """Return a text as it may appear in bytes: in a URL, in a JSON string, in hex, plain."""
    plain = value.encode("utf-8", "replace")
    written = encode(plain.decode())
    return (
        quote(plain, "").encode(),
        ascii_json(written)[1:-1],
        written[1:-1],
        plain.hex().encode(),
        plain,
    )
