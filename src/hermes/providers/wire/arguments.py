"""Parses the arguments of a tool call as the model wrote them."""

from __future__ import annotations

import json
import re

import msgspec

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.providers.scrub import clean_json, clean_text

_MAX_SHOWN_CHARS = 500
_FENCE = re.compile(r"^```[a-z]*\s*\n?(.*?)\s*```$", re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)


class Arguments(Value):
    """`broken` is empty, or tells the model why the call cannot run."""

    value: JsonObject = {}
    broken: str = ""


def read_arguments(raw: object, *, whole: bool) -> Arguments:
    """With `whole=False` the reply was cut off: nothing is repaired, and empty arguments count as
    incomplete."""
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
    """Parses an object inside a code fence, with raw line breaks in strings, with trailing commas,
    or followed by text that is not a second object. A missing end is never added."""
    fenced = _FENCE.match(text)
    text = fenced[1].strip() if fenced else text
    value = _first_object(text)
    if value is None:
        value = _first_object(_STRING_OR_COMMA.sub(_drop_comma, text))
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


def _drop_comma(found: re.Match[str]) -> str:
    return "" if found[0] == "," else found[0]


def _broken(raw: str, *, whole: bool) -> Arguments:
    shown = clean_text(raw if len(raw) <= _MAX_SHOWN_CHARS else raw[:_MAX_SHOWN_CHARS] + "…")
    why = (
        "the arguments are not a valid JSON object"
        if whole
        else "the reply ended before the arguments were complete"
    )
    return Arguments(broken=f"{why}: {shown}" if shown else why)
