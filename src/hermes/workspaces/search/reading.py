"""Runs in the process that searches with Python's `re`: reads files and prints matching lines.

Imports little, because every such search starts a new process."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO

from hermes.codec.json import decode
from hermes.codec.values import Value
from hermes.core.ports import SearchQuery
from hermes.workspaces.search.pattern import compile_for_python
from hermes.workspaces.search.selection import Selection
from hermes.workspaces.search.texts import is_text

# Bytes that are not UTF-8. A line break, which `.` does not match, takes their place.
_INVALID = re.compile("[\udc80-\udcff]")


class SearchTask(Value):
    query: SearchQuery
    line_bytes: int


def main(task: str) -> None:
    """Print matches in the format of grep, or what is wrong with the pattern."""
    work = decode(SearchTask, task)
    try:
        pattern = compile_for_python(work.query.pattern)
    except (re.error, OverflowError, RecursionError) as error:
        sys.exit(str(error))
    for path in Selection(work.query).walk():
        if is_text(path):
            _search_file(path, pattern, work, sys.stdout.buffer)


def _search_file(path: str, pattern: re.Pattern[str], work: SearchTask, out: BinaryIO) -> None:
    name = path.encode()
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            for number, is_match, line in _select_lines(file, pattern.search, work.query.context):
                sign = b":" if is_match else b"-"
                text = line[: work.line_bytes + 1]
                out.write(b"%b\0%d%b%b\n" % (name, number, sign, text))
    except OSError:
        return
    out.flush()


def _select_lines(
    file: BinaryIO, matches: Callable[[str], object], context: int
) -> Iterator[tuple[int, bool, bytes]]:
    """Yield matching lines and the context around them, each line once."""
    before: deque[tuple[int, bool, bytes]] = deque(maxlen=context)
    after = 0
    for number, raw in enumerate(file, 1):
        line = raw.removesuffix(b"\n")
        if matches(_INVALID.sub("\n", line.decode("utf-8", "surrogateescape"))):
            yield from before
            before.clear()
            yield number, True, line
            after = context
        elif after:
            yield number, False, line
            after -= 1
        else:
            before.append((number, False, line))
