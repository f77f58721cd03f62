"""Parses the header of a GGUF file: metadata and number of tensor elements."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from hermes.codec.values import JsonValue, Value

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
    """`metadata` omits arrays: they are vocabularies. `elements` is the sum over all tensors."""

    metadata: dict[str, JsonValue]
    elements: int


def read_header(path: Path) -> GgufHeader:
    """Raises ValueError for a damaged or foreign file, OSError when it cannot be read."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("not a GGUF file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return parse_header(data)


def parse_header(data: bytes | mmap.mmap) -> GgufHeader:
    """Parses the header of a whole file."""
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
        """A tight loop: a vocabulary has hundreds of thousands of entries."""
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
    """None for an array."""
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
