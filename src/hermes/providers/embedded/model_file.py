"""Describes a GGUF file from its header without loading the model."""

from __future__ import annotations

import mmap
import os
import re
import struct
from pathlib import Path
from typing import Any

from hermes.codec.values import JsonValue, Value
from hermes.core.errors import ConfigError

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ARRAY = 9
_STRING = 8
# Type numbers of the format as `struct` formats.
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_MAX_NESTING = 4
_MAX_DIMENSIONS = 8
_DEFAULT_ALIGNMENT = 32


class GgufHeader(Value):
    """The header of a GGUF file."""

    metadata: dict[str, JsonValue]  # without arrays: they are vocabularies
    elements: int  # the sum over all tensors


def read_header(path: Path) -> GgufHeader:
    """Read the header of a file. Raise ValueError for a damaged or foreign file, OSError when it
    cannot be read."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("not a GGUF file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return parse_header(data)


def parse_header(data: bytes | mmap.mmap) -> GgufHeader:
    """Parse the header of a whole file."""
    try:
        return _parse(_Cursor(data))
    except struct.error as error:
        raise ValueError("the header is truncated") from error


class _Cursor:
    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data = data
        self.size = len(data)
        self.at = len(MAGIC)

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def skip(self, count: int) -> None:
        if count > self.size - self.at:
            raise ValueError("the header is truncated")
        self.at += count

    def text(self) -> str:
        count = self.number("<Q")
        start = self.at
        self.skip(count)
        return self.data[start : self.at].decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        """Skip strings in a tight loop: a vocabulary has hundreds of thousands of entries."""
        data, at, end = self.data, self.at, self.size
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            at += 8 + unpack(data, at)[0]
            if at > end:
                raise ValueError("the header is truncated")
        self.at = at


def _parse(cursor: _Cursor) -> GgufHeader:
    version = cursor.number("<I")
    if version not in _VERSIONS:
        raise ValueError(f"GGUF version {version} is not supported")
    tensors, entries = cursor.number("<Q"), cursor.number("<Q")
    metadata: dict[str, JsonValue] = {}
    for _ in range(entries):
        key = cursor.text()
        value = _value(cursor, cursor.number("<I"))
        if value is not None:
            metadata[key] = value
    return GgufHeader(metadata=metadata, elements=_elements(cursor, tensors, metadata))


def _value(cursor: _Cursor, kind: int, depth: int = 0) -> JsonValue:
    """Read a value; None for an array."""
    if kind in _SCALARS:
        return cursor.number(_SCALARS[kind])
    if kind == _STRING:
        return cursor.text()
    if kind != _ARRAY or depth > _MAX_NESTING:
        raise ValueError("the header is damaged")
    inner, count = cursor.number("<I"), cursor.number("<Q")
    if inner in _SCALARS:
        cursor.skip(count * struct.calcsize(_SCALARS[inner]))
    elif inner == _STRING:
        cursor.skip_texts(count)
    else:
        for _ in range(count):
            _value(cursor, inner, depth + 1)
    return None


def _elements(cursor: _Cursor, tensors: int, metadata: dict[str, JsonValue]) -> int:
    total, farthest = 0, 0
    for _ in range(tensors):
        cursor.text()
        dimensions = cursor.number("<I")
        if dimensions > _MAX_DIMENSIONS:
            raise ValueError("the header is damaged")
        elements = 1
        for _ in range(dimensions):
            elements *= cursor.number("<Q")
        cursor.number("<I")
        farthest = max(farthest, cursor.number("<Q"))
        total += elements
    alignment = metadata.get("general.alignment")
    step = alignment if isinstance(alignment, int) and alignment > 0 else _DEFAULT_ALIGNMENT
    start = -(-cursor.at // step) * step
    if tensors and start + farthest >= cursor.size:
        raise ValueError("the file is incomplete; download it again")
    return total


SUFFIX = ".gguf"
SMALL = 1_000_000_000
"""Models with fewer parameters choose tools no better than by chance."""

# Conversations seldom use more, and it costs memory from the start.
_LARGEST_WINDOW = 32_768
# A small model loses track long before, and is slow on an ordinary processor.
_SMALL_WINDOW = 4_096
_LEAST_WINDOW = 2_048
_UNKNOWN_WINDOW = 4_096
# The share of memory (1/n) that the context may use; the weights need memory too.
_MEMORY_SHARE = 4
_NUMBER_BYTES = 2
# Kinds of GGUF files without a chat model.
_OTHER_TYPES = ("mmproj", "adapter", "imatrix")
_NOT_CHAT = ("clip", "bert", "t5encoder", "whisper", "wavtokenizer", "embedding")
_PART = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)


class ModelFile(Value):
    """A model file and what its header says."""

    path: Path
    size: int  # bytes of all parts
    parameters: int
    window: int  # the part of the maximum context that is used here
    trained: int = 0  # the model's maximum context; 0 if unknown
    architecture: str = ""
    name: str = ""
    licence: str = ""
    has_template: bool = True
    switchable: bool = False  # the chat template can disable reasoning

    @property
    def small(self) -> bool:
        return self.parameters < SMALL

    @property
    def summary(self) -> str:
        """A sentence for the user about the model."""
        what = f"{self.path.name} ({format_parameters(self.parameters)} parameters)"
        text = f"{what} runs on this machine; nothing leaves it."
        if not self.has_template:
            text += " It has no chat template and may not be a chat model."
        if self.small:
            text += (
                " Reduced mode: no tools. For an agent, name a GGUF file with 3B parameters or"
                " more: `hermes -m FILE.gguf`."
            )
        return text


def describe_model_file(path: Path, *, memory: int | None = None) -> ModelFile:
    """Describe the model in a file. Raise ConfigError if it holds no chat model. `memory` is the
    machine's, in bytes."""
    path = path.absolute()
    parts = _parts(path)
    header = _header(path)
    elements = header.elements + sum(_header(part).elements for part in parts[1:])
    known = header.metadata
    architecture = _text(known, "general.architecture")
    if _text(known, "general.type") in _OTHER_TYPES or any(w in architecture for w in _NOT_CHAT):
        raise ConfigError(f"{path} is not a chat model ({architecture}); choose another.")
    parameters = _number(known, "general.parameter_count") or elements
    template = _text(known, "tokenizer.chat_template")
    trained = _number(known, f"{architecture}.context_length")
    most = _SMALL_WINDOW if parameters < SMALL else _LARGEST_WINDOW
    if cost := _bytes_per_token(known, architecture):
        memory = memory or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        affordable = memory // _MEMORY_SHARE // cost // 1024 * 1024
        most = min(most, max(_LEAST_WINDOW, affordable))
    return ModelFile(
        path=path,
        size=sum(part.stat().st_size for part in parts),
        parameters=parameters,
        window=min(trained or _UNKNOWN_WINDOW, most),
        trained=trained,
        architecture=architecture,
        name=_text(known, "general.name"),
        licence=_text(known, "general.license"),
        has_template=bool(template),
        switchable="enable_thinking" in template,
    )


def find_model_file(name: str, folder: Path) -> Path:
    """Return the file for a path, or for the name of a model installed in `folder`."""
    if name.lower().endswith(SUFFIX) or "/" in name:
        return Path(name).expanduser()
    found = folder / f"{name}{SUFFIX}"
    if found.is_file():
        return found
    known = ", ".join(sorted(path.stem for path in folder.glob(f"*{SUFFIX}")))
    hint = f"available: {known}" if known else "`hermes model list` shows what is available"
    raise ConfigError(f"No model named {name!r} is installed; {hint}.")


def format_parameters(number: int) -> str:
    """Format a number of parameters: 135M, 1.1B, 8B."""
    for unit, size in (("B", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if number >= size:
            digits = f"{number / size:.1f}" if number < 10 * size else f"{number / size:.0f}"
            return digits.removesuffix(".0") + unit
    return str(number)


def format_size(size: int) -> str:
    """Format a size: 98 MB, 4.7 GB."""
    if size >= 1_000_000_000:
        return f"{size / 1_000_000_000:.1f} GB"
    return f"{max(1, round(size / 1_000_000))} MB"


def _parts(path: Path) -> list[Path]:
    """Return the files of a model. Large models come in numbered files; the runtime finds the
    others from the first."""
    match = _PART.match(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    if int(match["number"]) != 1:
        first = f"{match['stem']}-00001-of-{match['count']}{SUFFIX}"
        raise ConfigError(f"{path} is a later part of a model; use its first part, {first}.")
    names = (f"{match['stem']}-{n:05}-of-{match['count']}{SUFFIX}" for n in range(1, count + 1))
    return [path.with_name(name) for name in names]


def _header(path: Path) -> GgufHeader:
    try:
        return read_header(path)
    except ValueError as error:
        raise ConfigError(f"{path} cannot be used as a model ({error}); choose another.") from error
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise ConfigError(
            f"The model file {path} cannot be read ({why}); check the path."
        ) from error


def _bytes_per_token(known: dict[str, JsonValue], architecture: str) -> int:
    """Return the bytes of context per token; 0 if the file does not say enough."""

    def number(name: str) -> int:
        return _number(known, f"{architecture}.{name}")

    heads = number("attention.head_count")
    width = number("embedding_length") // heads if heads else 0
    key = number("attention.key_length") or width
    value = number("attention.value_length") or width
    shared = number("attention.head_count_kv") or heads
    return number("block_count") * shared * (key + value) * _NUMBER_BYTES


def _text(known: dict[str, JsonValue], key: str) -> str:
    value = known.get(key)
    return value if isinstance(value, str) else ""


def _number(known: dict[str, JsonValue], key: str) -> int:
    value = known.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
