"""Converts data and text to the type of a setting."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonValue
from hermes.config.schema import alternatives, describe_type, strip_bounds
from hermes.config.switches import TRUE_WORDS

FALSE_WORDS = frozenset({"0", "false", "no", "off"})


class WrongType(ValueError):
    """The value has the wrong type; the message says what it must be."""


def from_data(kind: Any, value: JsonValue) -> Any:
    """Converts a value of YAML or JSON. Words for true and false are booleans; `false` for a
    choice means "off" or "none", whichever it offers."""
    members = _members(kind)
    if isinstance(value, str) and bool in members and str not in members:
        value = _parse_bool(value)
    if value is False or value in ("off", "disabled"):
        value = next((word for word in ("off", "none") if word in _choices(kind)), value)
    if isinstance(value, list) and tuple in _origins(kind):
        value = [item if isinstance(item, str) else _as_text(item) for item in value]
    try:
        return convert(kind, value)
    except DecodeError as error:
        raise WrongType(f"must be {describe_type(kind)}") from error


def from_text(kind: Any, text: str) -> Any:
    """Converts typed text: `40`, `true`, `null`, `a,b`, `["a", "b"]`, `{"a": 1}`."""
    members = _members(kind)
    if type(None) in members and text.strip().lower() in ("null", "none", "~"):
        return None
    if str in members or bool in members or _choices(kind):
        return from_data(kind, text)
    if tuple in _origins(kind) and text.lstrip()[:1] != "[":
        return from_data(kind, [part.strip() for part in text.split(",") if part.strip()])
    return from_data(kind, _as_json(text))


def guess_value(text: str) -> JsonValue:
    """The value of an unknown key: parsed as JSON if possible, else the text."""
    lowered = text.strip().lower()
    if lowered in ("true", "yes", "on"):
        return True
    if lowered in ("false", "no", "off"):
        return False
    return _as_json(text)


def _as_json(text: str) -> JsonValue:
    try:
        return decode(object, text.strip())
    except DecodeError:
        return text


def _parse_bool(word: str) -> bool | str:
    lowered = word.strip().lower()
    if lowered in TRUE_WORDS:
        return True
    return False if lowered in FALSE_WORDS else word


def _as_text(item: JsonValue) -> JsonValue:
    """YAML reads `- 8080` as a number; a list of text needs "8080"."""
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else item


def _members(kind: Any) -> tuple[Any, ...]:
    return tuple(strip_bounds(member)[0] for member in alternatives(strip_bounds(kind)[0]))


def _origins(kind: Any) -> tuple[Any, ...]:
    return tuple(get_origin(member) for member in _members(kind))


def _choices(kind: Any) -> tuple[Any, ...]:
    return tuple(
        choice
        for member in _members(kind)
        if get_origin(member) is Literal
        for choice in get_args(member)
    )
