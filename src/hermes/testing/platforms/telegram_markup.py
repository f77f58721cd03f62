"""Validates text in Telegram's parse mode "HTML" as the Bot API does, and finds its entities."""

from __future__ import annotations

import re
from typing import Any

_ENTITIES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
_TAG = re.compile(r"<(/?)([a-zA-Z0-9-]*)((?:\s+[a-zA-Z-]+(?:=(?:\"[^\"]*\"|'[^']*'))?)*)\s*>")
_ATTRIBUTE = re.compile(r"([a-zA-Z-]+)(?:=(?:\"([^\"]*)\"|'([^']*)'))?")
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}


class MarkupError(Exception):
    """The text is refused; the message is that of the Bot API."""


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def parse_html(source: str) -> tuple[str, list[dict[str, Any]]]:
    """The visible text and its entities. MarkupError for what Telegram refuses."""
    pieces: list[str] = []
    entities: list[dict[str, Any]] = []
    opened: list[tuple[str, int, dict[str, str]]] = []
    length = at = 0
    while at < len(source):
        if source[at] != "<":
            end = source.find("<", at)
            end = len(source) if end < 0 else end
            piece = _REFERENCE.sub(_decode, source[at:end])
            pieces.append(piece)
            length += utf16_length(piece)
            at = end
            continue
        tag = _TAG.match(source, at)
        offset = len(source[:at].encode())
        if tag is None:
            raise MarkupError(f"Unclosed start tag at byte offset {offset}")
        name = tag[2].lower()
        if tag[1]:
            entities += _close(opened, name, length, offset)
        else:
            opened.append((_check_open(name, offset, opened), length, _attributes(tag[3])))
        at = tag.end()
    if opened:
        raise MarkupError(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}"')
    return "".join(pieces), sorted(entities, key=lambda each: (each["offset"], -each["length"]))


def _check_open(name: str, offset: int, opened: list[tuple[str, int, dict[str, str]]]) -> str:
    if name not in _ENTITIES:
        raise MarkupError(f'Unsupported start tag "{name}" at byte offset {offset}')
    # Stricter than the Bot API, which drops such entities: they are never meant.
    above = [each[0] for each in opened]
    if name == "blockquote" and name in above:
        raise MarkupError(f"Nested blockquote at byte offset {offset}")
    if "code" in above or ("pre" in above and name != "code"):
        raise MarkupError(f"Entity inside code at byte offset {offset}")
    return name


def _close(
    opened: list[tuple[str, int, dict[str, str]]], name: str, length: int, offset: int
) -> list[dict[str, Any]]:
    if not opened:
        raise MarkupError(f"Unexpected end tag at byte offset {offset}")
    expected, start, attributes = opened.pop()
    if name and name != expected:
        raise MarkupError(
            f'Unmatched end tag at byte offset {offset}, expected "</{expected}>", '
            f'found "</{name}>"'
        )
    if length == start:
        return []
    entity: dict[str, Any] = {
        "type": _ENTITIES[expected],
        "offset": start,
        "length": length - start,
    }
    if expected == "a":
        if not attributes.get("href"):
            return []
        entity["url"] = attributes["href"]
    return [entity]


def _attributes(source: str) -> dict[str, str]:
    return {
        found[1].lower(): _REFERENCE.sub(_decode, found[2] or found[3] or "")
        for found in _ATTRIBUTE.finditer(source)
    }


def _decode(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED[found[3]]
    code = int(found[1]) if found[1] else int(found[2], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else found[0]
