"""Values as models write them in text: JSON, and the notation of Python where it means the same."""

from __future__ import annotations

import ast
import json
from typing import Any

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.scrub import clean_json

_WORDS = {"true": True, "false": False, "null": None}
_TOO_DEEP = (RecursionError, MemoryError)


class Unreadable(ValueError):
    """The text is no value, or could be more than one."""


def value_of(text: str) -> JsonValue:
    """A JSON value, or a Python literal that has the same meaning. A key that comes twice makes an
    object unreadable: nobody knows which of the two is meant."""
    try:
        found = _JSON.decode(text)
    except Unreadable:
        raise
    except (ValueError, *_TOO_DEEP):
        found = _literal(text)
    return clean_json(found)


def object_of(text: str) -> JsonObject:
    found = value_of(text)
    if not isinstance(found, dict):
        raise Unreadable("no object")
    return found


def literal_of(node: ast.expr) -> JsonValue:
    """The value of a syntax tree; JSON's own words count as well as Python's."""
    match node:
        case ast.Constant(value=value):
            if value is None or isinstance(value, bool | int | float | str):
                return value
        case ast.Name(id=name) if name in _WORDS:
            return _WORDS[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [literal_of(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return _pairs([(_key(k), literal_of(v)) for k, v in zip(keys, values, strict=True)])
        case _:
            pass
    raise Unreadable("no literal")


def tree_of(text: str) -> ast.expr:
    """The expression in the text, as a tree that nobody runs."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, *_TOO_DEEP) as error:
        raise Unreadable("no expression") from error


def _literal(text: str) -> JsonValue:
    if text[:1] not in ("{", "[", "'", '"', "(") and text not in ("None", "True", "False"):
        raise Unreadable("no value")
    try:
        return literal_of(tree_of(text))
    except _TOO_DEEP as error:
        raise Unreadable("too deep") from error


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise Unreadable("a key is no text")


def _pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Unreadable("a key comes twice")
    return made


def _constant(word: str) -> float:
    raise Unreadable(f"{word} is no JSON")


# Not strict: models write line breaks inside of strings as they are.
_JSON = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, strict=False)
