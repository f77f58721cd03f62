"""A cache of compiled regular expressions, because compiling them is half of a short run's cost.

After `remember`, the expressions of modules come from a file beside the bytecode; `keep` adds
missing ones. Expressions made at run time are never stored, because they may hold user data.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import contextlib
import marshal
import os
import re
import sys
from binascii import crc32
from collections.abc import Callable
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any

PACKAGE = Path(__file__).parents[1]
FILE = PACKAGE / "__pycache__" / f"expressions.{sys.implementation.cache_tag}-{_sre.MAGIC}"
# Modules of Python, of libraries and our own. Those of a home folder change.
INSTALLED = (str(PACKAGE), sys.prefix, sys.base_prefix)
MOST = 5_000
# The most frames between an expression and the body of the module that is being imported.
NEAR = 4

Pattern = str | bytes
Key = tuple[Pattern, int]
# All flags, the code, the number of groups, and their names in both directions.
Compiled = tuple[int, bytes, int, dict[str, int], tuple[str | None, ...]]

_compile: Callable[[Any, int], Any] = _compiler.compile
_known: dict[Key, Compiled] = {}
_missing: set[Key] = set()


def load_cache() -> None:
    """Load the file for this process. Each Python version has its own."""
    with contextlib.suppress(OSError):
        data = FILE.read_bytes()
        if int.from_bytes(data[:4], "big") == crc32(data[4:]):
            _known.update(marshal.loads(data[4:]))
    _compiler.compile = _compile_cached


def compile_constant(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile an expression late that consists only of text from our own files."""
    if (key := (pattern, int(flags))) not in _known:
        _missing.add(key)
    return re.compile(pattern, flags)


def save_cache() -> None:
    """Add the missing expressions to the file, if it can be written."""
    if not _missing or sys.dont_write_bytecode or not os.access(FILE.parent, os.W_OK):
        return
    new = {key: made for key in _missing if (made := _serialize(*key))}
    known = new if len(_known) > MOST else _known | new
    data = marshal.dumps(known)
    beside = FILE.with_name(f"{FILE.name}.{os.getpid()}")
    try:
        beside.write_bytes(crc32(data).to_bytes(4, "big") + data)
        beside.replace(FILE)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def _compile_cached(pattern: Any, flags: int = 0) -> Any:
    if type(pattern) is not str and type(pattern) is not bytes:
        return _compile(pattern, flags)
    if known := _known.get((pattern, flags)):
        return _restore(pattern, known)
    if _is_loading():
        _missing.add((pattern, flags))
    return _compile(pattern, flags)


def _restore(pattern: Pattern, known: Compiled) -> Any:
    flags, code, groups, numbers, names = known
    words = memoryview(code).cast("I").tolist()
    return _sre.compile(pattern, flags, words, groups, numbers, names)


def _serialize(pattern: Pattern, flags: int) -> Compiled | None:
    """The compiled form; None if this Python's compiler is not supported."""
    try:
        parsed = _parser.parse(pattern, flags)
        state = parsed.state
        code = b"".join(word.to_bytes(4, sys.byteorder) for word in _compiler._code(parsed, flags))
        names = {number: name for name, number in state.groupdict.items()}
        order = tuple(names.get(number) for number in range(state.groups))
        made = (flags | state.flags, code, state.groups - 1, dict(state.groupdict), order)
        return made if _restore(pattern, made) == _compile(pattern, flags) else None
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def _is_loading() -> bool:
    """Whether the expression is compiled by the body of a module that is being imported."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") == "re":
        frame = frame.f_back
    for _ in range(NEAR):
        if frame.f_code.co_name == "<module>":
            # The main program is not an import: it does the work.
            is_program = frame.f_globals.get("__name__") == "__main__"
            return not is_program and frame.f_code.co_filename.startswith(INSTALLED)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return False
