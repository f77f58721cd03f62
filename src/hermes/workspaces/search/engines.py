"""The search engines (ripgrep, GNU grep and Python), and the parser for their output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Literal

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.ports import SearchMatch, SearchQuery
from hermes.workspaces.child import Child
from hermes.workspaces.search.selection import Selection
from hermes.workspaces.search.worker import SearchTask, match_before_cr

EngineName = Literal["ripgrep", "grep", "python"]

# File names per call; the limit of the kernel is far higher.
ARGUMENT_BYTES = 100_000
ERROR_BYTES = 4_000
# A longer line is cut while it arrives, so that no line can fill the memory.
HELD_BYTES = 65_536


class SearchLimits(Value):
    """Limits of a search. A search that reaches one stops there and is marked as cut."""

    matches: int = 5_000
    files: int = 20_000
    candidates: int = 200_000
    seconds: float = 30.0
    line_bytes: int = 4_000


async def run_program(
    program: str,
    arguments: tuple[str, ...],
    sink: Callable[[bytes], None],
    *,
    enough: asyncio.Event,
) -> None:
    """Run until it ends or `enough` is set. The programs are told not to report unreadable files,
    so any error output means that this search failed: ToolError."""
    output = bytearray()

    def add_error(data: bytes) -> None:
        output.extend(data[: ERROR_BYTES - len(output)])

    try:
        env = {"LC_ALL": "C.UTF-8", "PATH": os.defpath}
        child = Child(program, (program, *arguments), env, sink, errors=add_error)
    except OSError as error:
        raise ToolError(f"{program} cannot be started: {error.strerror}.") from error
    try:
        await child.wait(timeout=None, stop=enough)
    finally:
        if not child.ended.done():
            await child.end(grace_seconds=0)
        child.close()
    if output and not enough.is_set():
        # ripgrep prints the pattern before the line that names the error.
        lines = output.decode("utf-8", "replace").strip().splitlines()
        named = [line for line in lines if line.startswith("error: ")]
        first = named[0].removeprefix("error: ") if named else lines[0]
        raise ToolError(first.removeprefix(f"{program}: ").removeprefix("grep: "))


class MatchReader:
    """Collects matches from a stream until there are enough."""

    def __init__(self, *, most: int, line_bytes: int) -> None:
        self.matches: list[SearchMatch] = []
        self.enough = asyncio.Event()
        self._most = most
        self._line_bytes = line_bytes
        self._count = 0
        self._held = bytearray()
        self._in_long_line = False

    @property
    def full(self) -> bool:
        return self.enough.is_set()

    def add(self, data: bytes) -> None:
        if self.full:
            return
        if self._in_long_line:
            end = data.find(b"\n")
            if end < 0:
                return
            data = data[end:]
            self._in_long_line = False
        self._held += data
        at = 0
        while not self.full:
            zero = self._held.find(b"\0", at)
            end = self._held.find(b"\n", zero) if zero >= 0 else -1
            if end < 0:
                break
            self._take(bytes(self._held[at:zero]), bytes(self._held[zero + 1 : end]))
            at = end + 1
        del self._held[:at]
        zero = self._held.find(b"\0")
        if zero >= 0 and len(self._held) - zero > HELD_BYTES:
            del self._held[zero + HELD_BYTES :]
            self._in_long_line = True

    def _take(self, path: bytes, record: bytes) -> None:
        digits = 0
        while record[digits : digits + 1].isdigit():
            digits += 1
        is_context = record[digits : digits + 1] == b"-"
        if not is_context and self._count == self._most:
            # The context before this match is not shown either.
            while self.matches and self.matches[-1].is_context:
                self.matches.pop()
            self.enough.set()
            return
        self._count += not is_context
        text = record[digits + 1 :].removesuffix(b"\r")[: self._line_bytes]
        self.matches.append(
            SearchMatch(
                path=path.decode("utf-8", "replace"),
                line=int(record[:digits]),
                text=text.decode("utf-8", "replace"),
                is_context=is_context,
            )
        )


class NameReader:
    """Collects file names that end in NUL."""

    def __init__(self, *, most: int, enough: asyncio.Event) -> None:
        self.names: list[str] = []
        self.cut = False
        self._most = most
        self._enough = enough
        self._held = b""

    def add(self, data: bytes) -> None:
        *names, self._held = (self._held + data).split(b"\0")
        self.names += map(os.fsdecode, names)
        if len(self.names) > self._most:
            del self.names[self._most :]
            self.cut = True
            self._enough.set()


def batches(paths: Iterable[str]) -> Iterator[list[str]]:
    """Split paths so that each batch fits into the arguments of one call."""
    batch: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + 1
        if batch and size + length > ARGUMENT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch


# Options of ripgrep. It must list every file of the selection, so rules of parent folders, other
# ignore files and user settings are off. `Selection` drops the files that it lists in addition.
WALK_OPTIONS = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--null",
    "--no-require-git",
    "--no-ignore-parent",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
)
_LINE_OPTIONS = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--threads=1",
    "--null",
    "--text",
    "--encoding=none",
    "--line-number",
    "--with-filename",
    "--no-heading",
    "--no-context-separator",
)
# Characters, digits and word boundaries are those of Unicode, as in the other engines.
UNICODE = "(*UTF)(*UCP)"
GREP_OPTIONS = (
    "--perl-regexp",
    "--no-messages",
    "--color=never",
    "--null",
    "--text",
    "--line-number",
    "--with-filename",
    "--no-group-separator",
)


class WalkSearch:
    """Lists files without a program."""

    async def files(self, selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
        """List the selected files, a batch at a time, so that a search can be stopped in
        between."""
        walk = batches(selection.walk())
        while not enough.is_set() and (batch := await asyncio.to_thread(next, walk, None)):
            names.add("\0".join((*batch, "")).encode())


class GrepSearch(WalkSearch):
    line_options: tuple[str, ...] = GREP_OPTIONS

    def __init__(self, program: str) -> None:
        self._program = program

    def regexp(self, pattern: str) -> str:
        return grep_regexp(pattern)

    async def candidates(
        self, query: SearchQuery, selection: Selection, *, most: int
    ) -> AsyncIterator[list[str]]:
        """Yield files that may have a matching line, in order, in batches."""
        yield [os.devnull]  # so that an invalid pattern fails even where there are no files
        walk = batches(selection.walk())
        while batch := await asyncio.to_thread(next, walk, None):
            yield batch

    async def lines(
        self, query: SearchQuery, paths: list[str], reader: MatchReader, enough: asyncio.Event
    ) -> None:
        regexp = self.regexp(query.pattern)
        arguments = (*self.line_options, f"--context={query.context}", regexp, "--", *paths)
        await run_program(self._program, arguments, reader.add, enough=enough)


class RipgrepSearch(GrepSearch):
    line_options = _LINE_OPTIONS

    def regexp(self, pattern: str) -> str:
        return f"--regexp={match_before_cr(pattern)}"

    async def files(self, selection: Selection, names: NameReader, enough: asyncio.Event) -> None:
        await self._list(selection, names, enough, "--files")

    async def candidates(
        self, query: SearchQuery, selection: Selection, *, most: int
    ) -> AsyncIterator[list[str]]:
        enough = asyncio.Event()
        names = NameReader(most=most, enough=enough)
        options = ("--encoding=none", "--files-with-matches", self.regexp(query.pattern))
        await self._list(selection, names, enough, *options)
        # The order of `Selection.walk`.
        for batch in batches(sorted(names.names, key=lambda path: path.encode().split(b"/"))):
            yield batch

    async def _list(
        self, selection: Selection, names: NameReader, enough: asyncio.Event, *options: str
    ) -> None:
        # A glob without folders means the same to both, and makes ripgrep faster.
        simple = next((glob.names for glob in selection.globs if glob.names), ())
        globs = [f"--glob={name}" for name in (*simple, "!.git")]
        hidden = ["--hidden"] if selection.hidden else []
        arguments = (*WALK_OPTIONS, *hidden, *globs, *options, "--", selection.root)
        await run_program(self._program, arguments, names.add, enough=enough)
        names.names = await asyncio.to_thread(lambda: [*filter(selection.includes, names.names)])


def grep_regexp(pattern: str) -> str:
    return f"--regexp={UNICODE}{match_before_cr(pattern)}"


_START = f"""import sys
sys.path[:] = sys.argv[2:]
from {SearchTask.__module__} import main
main(sys.argv[1])"""


class PythonSearch(WalkSearch):
    async def search(
        self, query: SearchQuery, line_bytes: int, reader: MatchReader, enough: asyncio.Event
    ) -> None:
        task = encode(SearchTask(query=query, line_bytes=line_bytes)).decode()
        arguments = ("-I", "-S", "-Wignore", "-c", _START, task, *filter(None, sys.path))
        await run_program(sys.executable, arguments, reader.add, enough=enough)
