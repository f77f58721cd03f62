"""Reads the YAML block at the top of a SKILL.md: plain blocks at once, others with the library."""

from __future__ import annotations

import re
from typing import Any

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import UsageError

FENCE = "---"
DEEPEST = 50
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*):(?:[ ]+(.*))?$")
# What the quick way takes as a plain word or sentence; anything else is for the library.
_PLAIN = re.compile(r"[A-Za-z_/(][^\n\t#:]*")
# With two points it is no number any more.
_NUMBERED = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
_ITEM = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Words that YAML reads as something else than text.
_MEANT = frozenset("true false yes no on off null y n ~".split())


class _Unsure(Exception):
    """The quick way does not know this form."""


def split(text: str) -> tuple[str, str]:
    """The block between the fences and the body after it; UsageError when there is no block."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise UsageError("The skill must begin with a line `---` and its frontmatter.")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise UsageError("The frontmatter has no end; put a line `---` after it.")


def read(block: str) -> JsonObject:
    """The mapping in the block as JSON would hold it; UsageError names the line that is wrong."""
    try:
        return quickly(block)
    except _Unsure:
        return thoroughly(block)


def quickly(block: str) -> JsonObject:
    """For the plainest blocks, without loading anything; _Unsure for all others."""
    rows = [row for row in block.split("\n") if row.strip()]
    found, rest = _mapping(rows, 0)
    if rest:
        raise _Unsure
    return found


def _mapping(rows: list[str], indent: int) -> tuple[JsonObject, list[str]]:
    found: JsonObject = {}
    while rows and _depth(rows[0]) == indent:
        match = _KEY.fullmatch(rows[0][indent:].rstrip())
        if match is None or match[1] in found or match[1].lower() in _MEANT:
            raise _Unsure
        if match[2]:
            found[match[1]], rows = _scalar(match[2].strip()), rows[1:]
        else:
            found[match[1]], rows = _block(rows[1:], indent)
    return found, rows


def _block(rows: list[str], indent: int) -> tuple[Any, list[str]]:
    """What hangs below a key without a value of its own."""
    depth = _depth(rows[0]) if rows else 0
    if rows and rows[0][depth:].startswith("- ") and depth >= indent:
        return _listing(rows, depth)
    if depth <= indent:
        return None, rows
    found, rest = _mapping(rows, depth)
    if rest and _depth(rest[0]) > indent:
        raise _Unsure
    return found, rest


def _listing(rows: list[str], depth: int) -> tuple[list[Any], list[str]]:
    found: list[Any] = []
    while rows and _depth(rows[0]) == depth and rows[0][depth:].startswith("- "):
        item = rows[0][depth + 2 :].strip()
        if _KEY.fullmatch(item):
            # A mapping as an item: its first key stands after the dash.
            inner = [" " * (depth + 2) + item, *rows[1:]]
            value, rows = _mapping(inner, depth + 2)
            found.append(value)
        else:
            found.append(_scalar(item))
            rows = rows[1:]
    if rows and _depth(rows[0]) > depth:
        raise _Unsure
    return found, rows


def _scalar(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        return [_item(part.strip()) for part in inner.split(",")] if inner else []
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        inner = text[1:-1]
        if "\\" in inner or text[0] in inner:
            raise _Unsure
        return inner
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"0|[1-9][0-9]{0,8}", text):
        return int(text)
    if _NUMBERED.fullmatch(text):
        return text
    if not _PLAIN.fullmatch(text) or text.lower() in _MEANT:
        raise _Unsure
    return text


def _item(text: str) -> str:
    if not _ITEM.fullmatch(text) or text.lower() in _MEANT:
        raise _Unsure
    return text


def _depth(row: str) -> int:
    if row.lstrip(" ")[:1] in ("\t", "#", ""):
        raise _Unsure
    return len(row) - len(row.lstrip(" "))


def thoroughly(block: str) -> JsonObject:
    # Few skills need it, and it is slow to load.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(block)
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise UsageError("The frontmatter must hold `key: value` lines.")
        return decode(JsonObject, encode(_plain(data, 0)))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 2} of the file)" if mark is not None else ""
        what = str(error.problem or "it is not YAML").partition("\n")[0]
        raise UsageError(f"The frontmatter cannot be read: {what}{where}.") from error
    except (YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        what = str(error).partition("\n")[0] or type(error).__name__
        raise UsageError(f"The frontmatter cannot be read: {what}.") from error


def _plain(value: Any, depth: int) -> Any:
    """JSON knows fewer kinds than YAML: days become text, keys are text."""
    if depth > DEEPEST:
        raise UsageError(f"The frontmatter is nested deeper than {DEEPEST} levels.")
    if isinstance(value, dict):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item, depth + 1) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
