"""Checks whether a text still parses as its file type. Data files must; for Python an error is
reported."""

from __future__ import annotations

import ast
import asyncio
import json
import tomllib
import warnings
from collections.abc import Callable
from typing import NamedTuple

from hermes.codec.values import Value
from hermes.tools.files.kinds import suffix

# JSON by name, and JSON with comments by convention.
_COMMENTED_JSON = ("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "/.vscode/", ".code-")
# Templates are not YAML or JSON before they are filled in.
_TEMPLATE_SIGNS = ("{{", "{%", "<%")


class SyntaxFault(Value):
    """The first place where a text does not parse; `near` is the source line there."""

    message: str
    line: int
    near: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class SyntaxVerdict(Value):
    """`refused` says why the text must not be written; `fault` is a new error."""

    status: str
    refused: str = ""
    fault: str = ""


class SyntaxCheck(NamedTuple):
    """How to parse one kind of file. Texts beyond `max_chars` would take too long. Errors in code
    are only reported."""

    fault: Callable[[str], SyntaxFault | None]
    max_chars: int
    is_data: bool = True


async def check_syntax(path: str, before: str | None, after: str) -> SyntaxVerdict:
    """Judge the syntax of a change. A file that did not parse before may stay so, so that it can be
    repaired step by step."""
    check = _CHECKS.get(suffix(path))
    if check is None or len(after) > check.max_chars:
        return SyntaxVerdict(status="skipped")
    fault = await _first_fault(check, after)
    if fault is None:
        return SyntaxVerdict(status="ok")
    known = before is not None and len(before) <= check.max_chars
    old = await _first_fault(check, before or "") if known else None
    if check.is_data and old is None and not _may_be_loose(path, after):
        return SyntaxVerdict(status="error", refused=str(fault))
    if old is not None and (old.message, old.near) == (fault.message, fault.near):
        return SyntaxVerdict(status="known")
    return SyntaxVerdict(status="error", fault=str(fault))


async def _first_fault(check: SyntaxCheck, text: str) -> SyntaxFault | None:
    if check.is_data:
        return await asyncio.to_thread(check.fault, text)
    # Python's parser warns through filters that all threads share, so it stays in this one.
    return check.fault(text)


def _may_be_loose(path: str, text: str) -> bool:
    if suffix(path) == ".toml":
        return False
    if suffix(path) == ".json" and any(part in path for part in _COMMENTED_JSON):
        return True
    return any(sign in text for sign in _TEMPLATE_SIGNS)


def _python_fault(text: str) -> SyntaxFault | None:
    with warnings.catch_warnings():
        # Odd escapes in strings are warnings of the parser, not errors of the file.
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            line = error.lineno or 0
            return SyntaxFault(message=error.msg, line=line, near=(error.text or "").strip())
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxFault(message=str(error) or "too deeply nested to parse", line=1)
    return None


def _json_fault(text: str) -> SyntaxFault | None:
    try:
        json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        return SyntaxFault(message=f"{error.msg} (column {error.colno})", line=error.lineno)
    except RecursionError:
        return SyntaxFault(message="too deeply nested to parse", line=1)
    return None


def _toml_fault(text: str) -> SyntaxFault | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at line ")
        line = place.partition(",")[0]
        return SyntaxFault(
            message=message, line=int(line) if line.isdigit() else text.count("\n") + 1
        )
    except RecursionError:
        return SyntaxFault(message="too deeply nested to parse", line=1)
    return None


def _yaml_fault(text: str) -> SyntaxFault | None:
    # Imported here: the YAML reader is slow to import and few sessions write YAML.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        for _event in YAML(typ="safe", pure=True).parse(text):
            pass
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        return SyntaxFault(message=error.problem or "not YAML", line=line)
    except (YAMLError, RecursionError) as error:
        return SyntaxFault(message=str(error).partition("\n")[0] or "not YAML", line=1)
    return None


_CHECKS = {
    ".py": SyntaxCheck(_python_fault, 150_000, is_data=False),
    ".pyi": SyntaxCheck(_python_fault, 150_000, is_data=False),
    ".json": SyntaxCheck(_json_fault, 8_000_000),
    ".ipynb": SyntaxCheck(_json_fault, 8_000_000),
    ".toml": SyntaxCheck(_toml_fault, 1_000_000),
    ".yaml": SyntaxCheck(_yaml_fault, 300_000),
    ".yml": SyntaxCheck(_yaml_fault, 300_000),
}
