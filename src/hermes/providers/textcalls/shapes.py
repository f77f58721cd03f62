"""Recognises JSON objects that request a tool call."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.textcalls.literals import UnreadableValue, parse_object, parse_value
from hermes.providers.textcalls.tape import NoCall, RawCall

NAMES = ("name", "tool_name", "function", "tool", "function_name", "action")
ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "kwargs")
LISTS = ("tool_calls", "function_call", "tool_call")
# Keys that may accompany a call without meaning.
_METADATA_KEYS = ("id", "type", "tool_call_id", "call_id", "index")
FIRST_KEYS = (*NAMES, *ARGUMENTS, *LISTS, *_METADATA_KEYS)


def parse_calls(text: str, *, strict: bool = False) -> tuple[RawCall, ...]:
    """The calls in the text of an object or list; raises NoCall. With `strict`, a call needs
    arguments: a name alone is not enough."""
    try:
        found = tuple(_raws(parse_value(text), strict=strict))
    except UnreadableValue as error:
        raise NoCall from error
    if not found:
        raise NoCall
    return found


def parse_arguments(text: str) -> JsonObject:
    try:
        return parse_object(text)
    except UnreadableValue as error:
        raise NoCall from error


def _raws(value: JsonValue, *, strict: bool) -> Iterator[RawCall]:
    if isinstance(value, list):
        for item in value:
            yield from _raws(item, strict=strict)
    elif isinstance(value, dict):
        yield from _raws_in_object(value, strict=strict)
    else:
        raise NoCall


def _raws_in_object(value: JsonObject, *, strict: bool) -> Iterator[RawCall]:
    for key in LISTS:
        if isinstance(value.get(key), list | dict):
            _require_only(value, (key,))
            yield from _raws(value[key], strict=strict)
            return
    inner = value.get("function")
    if isinstance(inner, dict):
        _require_only(value, ("function",))
        yield from _raws_in_object(inner, strict=strict)
        return
    yield _raw_of_object(value, strict=strict)


def _raw_of_object(value: JsonObject, *, strict: bool) -> RawCall:
    names = [key for key in NAMES if isinstance(value.get(key), str)]
    given = [key for key in ARGUMENTS if key in value]
    if len(names) != 1 or len(given) > 1 or (strict and not given):
        raise NoCall
    _require_only(value, (names[0], *given))
    arguments: JsonValue = value[given[0]] if given else {}
    if isinstance(arguments, str):
        arguments = parse_object(arguments) if arguments.strip() else {}
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise NoCall
    return RawCall(value[names[0]], arguments)


def _require_only(value: JsonObject, used: tuple[str, ...]) -> None:
    if any(key not in used and key not in _METADATA_KEYS for key in value):
        raise NoCall
