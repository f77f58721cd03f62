"""References to the results of other steps: `${s1}`, `${s1.items[0].name}`, `${s1.x|none}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue

_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_]+)((?:\.[\w-]+|\[[^\]{}]*\])*)(?:\|([^{}]*))?\}")
_PART = re.compile(r"\.([\w-]+)|\[([^\]]*)\]")
_INDEX = re.compile(r"-?\d+")
_SLICE = re.compile(r"(-?\d*):(-?\d*)")

# Returns the result of a step.
Lookup = Callable[[str], JsonValue]


class MissingValue(ValueError):
    """A reference names something that a result does not have."""


class StepResult:
    """The result of a step as references see it: JSON if the text is JSON, else the text with the
    details of the tool."""

    def __init__(self, text: str, details: JsonObject) -> None:
        self.text = text
        self.value: JsonValue = text
        if text.lstrip()[:1] in ("{", "["):
            with suppress(DecodeError):
                self.value = decode(object, text.encode())
        self.details = details

    def at(self, path: str) -> JsonValue:
        if not path:
            return self.value
        if isinstance(self.value, dict | list):
            return _walk(self.value, path)
        return _walk({**self.details, "text": self.text}, path)


def names_in(value: JsonValue) -> Iterator[str]:
    """Yield the names that references in a value use, in strings and in names of mappings."""
    if isinstance(value, str):
        yield from (found[1] for found in _REFERENCE.finditer(value))
    elif isinstance(value, dict):
        for each in (*value, *value.values()):
            yield from names_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from names_in(each)


def has_reference(value: JsonValue) -> bool:
    return next(names_in(value), None) is not None


def resolve(value: JsonValue, lookup: Callable[[str, str], JsonValue]) -> JsonValue:
    """Replace all references. A string that is exactly one reference gets the value with its type;
    inside a longer string, values become text. `lookup` gets the name and the path; raise
    MissingValue if there is no such value and no default."""
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return _value_of(whole, lookup)
        return _REFERENCE.sub(lambda found: as_text(_value_of(found, lookup)), value)
    if isinstance(value, dict):
        return {key: resolve(each, lookup) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(each, lookup) for each in value]
    return value


def replace_references(text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    return _REFERENCE.sub(replacement, text)


def reference_value(found: re.Match[str], lookup: Callable[[str, str], JsonValue]) -> JsonValue:
    return _value_of(found, lookup)


def as_text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else encode(value).decode()


def walk(value: JsonValue, path: str) -> JsonValue:
    """Return what a path such as `.items[0:3].name` selects."""
    return _walk(value, path) if path else value


def _value_of(found: re.Match[str], lookup: Callable[[str, str], JsonValue]) -> JsonValue:
    name, path, default = found.groups()
    try:
        value = lookup(name, path)
    except MissingValue:
        if default is None:
            raise
        value = None
    if value is None and default is not None:
        return _literal(default)
    return value


def _literal(text: str) -> JsonValue:
    try:
        found: JsonValue = decode(object, text.strip().encode())
    except DecodeError:
        return text
    return found


def _walk(value: JsonValue, path: str) -> JsonValue:
    rest = path
    while rest:
        part = _PART.match(rest)
        assert part is not None
        rest = rest[part.end() :]
        key, index = part.groups()
        if key is not None:
            value = _member(value, key)
        elif _INDEX.fullmatch(index.strip()):
            value = _item(value, int(index))
        elif (cut := _SLICE.fullmatch(index.strip())) is not None:
            if not isinstance(value, list | str):
                raise MissingValue(f"[{index}] needs a list, but there is {_kind(value)}.")
            low, high = (int(each) if each else None for each in cut.groups())
            value = value[low:high]
        else:
            value = _member(value, index.strip().strip("'\""))
    return value


def _member(value: JsonValue, key: str) -> JsonValue:
    if isinstance(value, list):
        # `items[0:3].url` are the addresses of all three.
        return [_member(each, key) for each in value]
    if isinstance(value, dict) and key in value:
        return value[key]
    names = f"; it has {', '.join(map(str, list(value)[:10]))}" if isinstance(value, dict) else ""
    raise MissingValue(f"There is no {key!r} in {_kind(value)}{names}.")


def _item(value: JsonValue, index: int) -> JsonValue:
    if not isinstance(value, list):
        raise MissingValue(f"[{index}] needs a list, but there is {_kind(value)}.")
    if not -len(value) <= index < len(value):
        raise MissingValue(f"[{index}] is outside of a list of {len(value)}.")
    return value[index]


def _kind(value: JsonValue) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "nothing" if value is None else "a number")
