"""Recovers rows from the raw pages of a database file whose b-trees are damaged.

Reads SQLite's file format: leaf pages of tables hold complete rows even when no page points to them
any more. Rows are recognised by their column types.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
_LEAF = 0x0D
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEADER, _FRAME_HEADER = 32, 24
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

# One letter per column: 0 the row id, i integer, n integer or null, t text, f number, h a hash.
LOG_COLUMNS = "0iititfh"
SESSION_COLUMNS = "0tni"


class PageDamage(Exception):
    """The bytes are not valid; never leaves this module."""


def salvage_rows(path: Path, kinds: str) -> Iterator[tuple[object, ...]]:
    """The rows with these column types in a database file or its write-ahead log, unordered."""
    with path.open("rb") as file:
        data = file.read()
    is_wal = len(data) >= 4 and struct.unpack(">I", data[:4])[0] in _WAL_MAGIC
    pages = _wal_pages(data) if is_wal else _pages(data)
    for number, page in enumerate(pages, start=1):
        # Page 1 of a database begins with the file header.
        start = 100 if number == 1 and not is_wal else 0
        if page[start : start + 1] == bytes([_LEAF]):
            yield from _rows(page, start, b"" if is_wal else data, kinds)


def _pages(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PAGE):
        yield data[start : start + PAGE]


def _wal_pages(data: bytes) -> Iterator[bytes]:
    step = _FRAME_HEADER + PAGE
    for start in range(_WAL_HEADER, len(data) - step + 1, step):
        yield data[start + _FRAME_HEADER : start + step]


def _rows(page: bytes, start: int, data: bytes, kinds: str) -> Iterator[tuple[object, ...]]:
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for index in range(min(count, PAGE // 4)):
        place = start + 8 + 2 * index
        cell = int.from_bytes(page[place : place + 2], "big")
        try:
            row_id, payload = _cell(page, cell, data)
            yield _columns(row_id, payload, kinds)
        except (PageDamage, IndexError, UnicodeDecodeError, struct.error):
            continue


def _cell(page: bytes, place: int, data: bytes) -> tuple[int, bytes]:
    size, place = _varint(page, place)
    row_id, place = _varint(page, place)
    most, least = PAGE - 35, (PAGE - 12) * 32 // 255 - 23
    if size <= most:
        return row_id, _slice(page, place, size)
    local = least + (size - least) % (PAGE - 4)
    local = local if local <= most else least
    payload = _slice(page, place, local)
    following = int.from_bytes(_slice(page, place + local, 4), "big")
    return row_id, payload + _overflow(data, following, size - local)


def _overflow(data: bytes, number: int, size: int) -> bytes:
    """The rest of a long row, page by page."""
    if size > len(data):
        raise PageDamage
    parts = []
    while size > 0:
        page = _slice(data, (number - 1) * PAGE, PAGE)
        parts.append(page[4 : 4 + size])
        size -= PAGE - 4
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _columns(row_id: int, payload: bytes, kinds: str) -> tuple[object, ...]:
    header, place = _varint(payload, 0)
    types = []
    while place < header:
        kind, place = _varint(payload, place)
        types.append(kind)
    if place != header or len(types) != len(kinds) or row_id < 1:
        raise PageDamage
    values: list[object] = []
    for wanted, kind in zip(kinds, types, strict=True):
        value, place = _value(payload, place, kind)
        if not _fits(wanted, value):
            raise PageDamage
        values.append(row_id if wanted == "0" else value)
    if place != len(payload):
        raise PageDamage
    return tuple(values)


def _value(payload: bytes, place: int, kind: int) -> tuple[object, int]:
    if kind in _INTEGER_BYTES:
        end = place + _INTEGER_BYTES[kind]
        return int.from_bytes(_slice(payload, place, end - place), "big", signed=True), end
    if kind == 7:
        return struct.unpack(">d", _slice(payload, place, 8))[0], place + 8
    if kind in (8, 9):
        return kind - 8, place
    if kind == 0:
        return None, place
    if kind < 12:
        raise PageDamage
    size = (kind - 12) // 2
    raw = _slice(payload, place, size)
    return (raw.decode() if kind % 2 else raw), place + size


def _fits(wanted: str, value: object) -> bool:
    match wanted:
        case "0":
            return value is None
        case "i":
            return isinstance(value, int)
        case "n":
            return value is None or isinstance(value, int)
        case "t":
            return isinstance(value, str)
        case "f":
            return isinstance(value, int | float)
        case _:
            return isinstance(value, bytes) and len(value) == 16


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[place + index]
        if index == 8:
            return (value << 8) | byte, place + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, place + index + 1
    raise PageDamage


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start < 0 or size < 0 or start + size > len(data):
        raise PageDamage
    return data[start : start + size]
