"""Parses YAML into plain data; errors name line and column."""

from __future__ import annotations

import math
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject

# Limit of nesting; it also stops a value that contains itself.
MAX_DEPTH = 50


class BadYaml(ValueError):
    """Invalid YAML; the message has line and column if known."""


def parse_yaml(raw: bytes) -> JsonObject:
    """Return the mapping of a document as JSON data; an empty document is an empty mapping."""
    return parse_text(decode_text(raw))


def decode_text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadYaml(f"line {line} is not UTF-8 text") from error


def parse_text(text: str) -> JsonObject:
    try:
        data = _library().load(text)
    except MarkedYAMLError as error:
        raise BadYaml(_format_error(error)) from error
    except (YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadYaml(str(error).partition("\n")[0] or type(error).__name__) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadYaml("line 1, column 1: the file must hold `key: value` lines")
    try:
        return decode(JsonObject, encode(_to_plain(data, 0)))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadYaml(f"a value cannot be used: {error}") from error


def compose_text(text: str) -> Node | None:
    """Return the node tree of a text that `parse_text` accepts; None if it is empty."""
    node: Node | None = _library().compose(text)
    return node


def _library() -> Any:
    return YAML(typ="safe", pure=True)


def _to_plain(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise BadYaml(f"it is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return {_key_text(key): _to_plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_plain(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # JSON would make null of it, which is a valid value for many settings.
        return str(value)
    return value


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else encode(key).decode().strip('"')


def _format_error(error: MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + str(error.problem or error.context or "it is not YAML").partition("\n")[0]
