"""Reads the YAML frontmatter of a SKILL.md."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import UsageError

FENCE = "---"
DEEPEST = 50
# The parsed frontmatter of the bundled skills, by digest, written by `make generate`. The first
# start in a home reads all of them: 12 ms to load the YAML library and 31 ms to parse 27 skills.
# Later starts use the cache of `scan`.
COMPILED = Path(__file__).with_name("frontmatter.json")


def split_frontmatter(text: str) -> tuple[str, str]:
    """Returns the frontmatter and the body; UsageError when there is no frontmatter."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise UsageError("The skill must begin with a line `---` and its frontmatter.")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    raise UsageError("The frontmatter has no end; put a line `---` after it.")


def read_frontmatter(block: str) -> JsonObject:
    """Returns the frontmatter as a JSON object; UsageError names the invalid line."""
    return _compiled().get(digest(block)) or parse_yaml(block)


def digest(block: str) -> str:
    return hashlib.sha256(block.encode()).hexdigest()[:16]


@cache
def _compiled() -> dict[str, JsonObject]:
    return decode(dict[str, JsonObject], COMPILED.read_bytes())


def parse_yaml(block: str) -> JsonObject:
    # Slow to load, and only needed when a skill changes.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(block)
        if data is None:
            return {}
        if not isinstance(data, dict):
            raise UsageError("The frontmatter must consist of `key: value` lines.")
        return decode(JsonObject, encode(_to_json(data, 0)))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 2} of the file)" if mark is not None else ""
        what = str(error.problem or "not YAML").partition("\n")[0]
        raise UsageError(f"The frontmatter is not valid: {what}{where}.") from error
    except (YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        what = str(error).partition("\n")[0] or type(error).__name__
        raise UsageError(f"The frontmatter is not valid: {what}.") from error


def _to_json(value: Any, depth: int) -> Any:
    """Converts YAML values without a JSON type, such as dates, to text."""
    if depth > DEEPEST:
        raise UsageError(f"The frontmatter is nested deeper than {DEEPEST} levels.")
    if isinstance(value, dict):
        return {str(key): _to_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_json(item, depth + 1) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
