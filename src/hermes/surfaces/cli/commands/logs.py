"""`hermes logs`: read and follow the log files of a home."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO

import click

from hermes.codec.json import encode, plain
from hermes.codec.values import Value
from hermes.commands.formatting import sanitize
from hermes.config.home import Home
from hermes.core.errors import UsageError
from hermes.credentials.redaction import line_redactor
from hermes.surfaces.cli.command_context import Role, apply_style, home_of

FOLLOW_SECONDS = 0.25


def rotated_files(path: Path) -> Iterator[Path]:
    """The file and its rotated predecessors, newest first."""
    number = 0
    file = path
    while file.exists():
        yield file
        number += 1
        file = path.with_name(f"{path.name}.{number}")


class Tail:
    """Follows a file from its current end, across rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._file: BinaryIO | None = None
        self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def new_lines(self) -> list[str]:
        """Complete lines only. A rotated file is read to its end before the next one."""
        if self._file is None:
            self._open()
        if self._file is None:
            return []
        moved = self._is_moved(self._file)
        data = self._rest + self._file.read()
        if moved:
            self.close()
            return _decode(data) + self.new_lines()
        whole, newline, self._rest = data.rpartition(b"\n")
        return _decode(whole + newline)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _open(self) -> None:
        try:
            self._file = self._path.open("rb")
        except OSError:
            self._file = None

    def _is_moved(self, file: BinaryIO) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except OSError:
            return True


def _decode(data: bytes) -> list[str]:
    return [f"{line}\n" for line in data.decode(errors="replace").split("\n") if line]


def show_mcp(home: Home, *, lines: int, follow: bool, as_json: bool) -> bool:
    """Print the newest lines of each server. Returns whether any server has a log."""
    files = sorted((home.logs / "mcp").glob("*.log"))
    # Server output is untrusted: it may contain secrets or terminal control sequences.
    # Redaction is slow to load.

    mask = line_redactor(home)
    with ExitStack() as stack:
        tails = {file: stack.enter_context(closing(Tail(file))) for file in files}
        for file in files:
            for line in _newest_lines(file, lines):
                _print_mcp(file.stem, line, mask, as_json)
        while follow and files:
            new = [(file.stem, line) for file, tail in tails.items() for line in tail.new_lines()]
            for server, line in new:
                _print_mcp(server, line.rstrip("\n"), mask, as_json)
            if not new:
                time.sleep(FOLLOW_SECONDS)
    return bool(files)


def _newest_lines(file: Path, count: int) -> list[str]:
    kept: deque[str] = deque(maxlen=count)
    for part in reversed([*rotated_files(file)]):
        with part.open(encoding="utf-8", errors="replace") as stream:
            kept.extend(line.rstrip("\n") for line in stream)
    return list(kept)


def _print_mcp(server: str, line: str, mask: Callable[[str], str], as_json: bool) -> None:
    text = sanitize(mask(line))
    shown = encode({"server": server, "text": text}).decode() if as_json else f"[{server}] {text}"
    print(shown, flush=True)


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
COLOURS: dict[str, Role] = {"WARNING": "warn", "ERROR": "error", "CRITICAL": "error"}
_HEAD = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) ([A-Z]+) \[([^\]]*)\] ([^\s:]+): (.*)", re.DOTALL
)
# Component: prefixes of its logger names.
COMPONENTS = {
    "agent": ("hermes.app", "hermes.context", "hermes.core", "hermes.memory", "hermes.skills"),
    "cli": ("hermes.surfaces.cli",),
    "providers": ("hermes.credentials", "hermes.providers"),
    "tools": ("hermes.tools", "hermes.undo", "hermes.web", "hermes.workspaces"),
}
_AGE_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class LogEntry(Value):
    """One log entry. `raw` is its text in the file; `at` is local time and sorts as text."""

    at: str
    level: str
    session: str
    logger: str
    text: str
    raw: str


class LogFilter(Value):
    level: str = "DEBUG"
    session: str = ""
    since: str = ""
    component: str = ""

    def __contains__(self, entry: LogEntry) -> bool:
        return (
            LEVELS.index(entry.level) >= LEVELS.index(self.level)
            and entry.session.startswith(self.session)
            and entry.at >= self.since
            and entry.logger.startswith(COMPONENTS.get(self.component, ("",)))
        )


@click.command(help="Show the newest log entries; `mcp`: stderr of MCP servers; `list`: the files.")
@click.argument("name", type=click.Choice(["agent", "errors", "mcp", "list"]), default="agent")
@click.option("-n", "--lines", default=50, type=click.IntRange(min=0), help="How many entries.")
@click.option("-f", "--follow", is_flag=True, help="Print new entries as they are written.")
@click.option("--level", type=click.Choice(LEVELS, case_sensitive=False), default="DEBUG")
@click.option("--session", default="", metavar="ID", help="Only this session (id or prefix).")
@click.option("--component", type=click.Choice(sorted(COMPONENTS)), help="Only this component.")
@click.option("--since", metavar="AGE", help="Only newer entries: 30m, 12h, 2d.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per entry.")
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    lines: int,
    follow: bool,
    level: str,
    session: str,
    component: str | None,
    since: str | None,
    as_json: bool,
) -> None:
    home = home_of(ctx)
    if name == "list":
        _print_files(home, as_json)
        return
    if name == "mcp":
        _show_mcp(home, lines, follow, as_json, narrowed=bool(session or component or since))
        return
    wanted = LogFilter(
        level=level,
        session=session,
        since=_start_time(since) if since else "",
        component=component or "",
    )
    path = home.logs / f"{name}.log"
    if not path.exists():
        print(f"There is no {path} yet; the first session creates it.", file=sys.stderr)
    # Opened before the old entries are read: a line may appear twice, but none is lost.
    with closing(Tail(path)) as tail:
        for entry in newest(path, wanted, lines):
            _print(entry, as_json)
        for entry in follow_entries(tail) if follow else ():
            if entry in wanted:
                _print(entry, as_json)


def _show_mcp(home: Home, lines: int, follow: bool, as_json: bool, *, narrowed: bool) -> None:
    if narrowed:
        raise UsageError("MCP server logs have no date or session; leave these options out.")
    if not show_mcp(home, lines=lines, follow=follow, as_json=as_json):
        print(f"There are no MCP server logs in {home.logs / 'mcp'} yet.", file=sys.stderr)


def _start_time(age: str) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - age_seconds(age)))


def age_seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw]?)", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an age; write 30m, 12h, 2d or 1w.")
    return float(match[1]) * _AGE_UNITS[match[2] or "d"]


def newest(path: Path, wanted: LogFilter, count: int) -> list[LogEntry]:
    """The newest matching entries, oldest first. Reads rotated files only as far as needed."""
    found: list[LogEntry] = []
    for file in rotated_files(path):
        with file.open(encoding="utf-8", errors="replace") as stream:
            entries = list(parse_entries(stream))
        found = [entry for entry in entries if entry in wanted] + found
        if len(found) >= count or (entries and entries[0].at < wanted.since):
            break
    return found[len(found) - count :] if count < len(found) else found


def parse_entries(lines: Iterable[str]) -> Iterator[LogEntry]:
    """A line without a timestamp continues the entry before it."""
    block = ""
    for line in lines:
        if block and _HEAD.match(line):
            yield from _entry(block)
            block = ""
        block += line
    yield from _entry(block)


def _entry(block: str) -> Iterator[LogEntry]:
    match = _HEAD.match(block)
    if match is not None and match[2] in LEVELS:
        yield LogEntry(
            at=match[1],
            level=match[2],
            session="" if match[3] == "-" else match[3],
            logger=match[4],
            text=match[5].rstrip("\n"),
            raw=block.rstrip("\n"),
        )


def follow_entries(tail: Tail) -> Iterator[LogEntry]:
    """New entries, without end."""
    while True:
        lines = tail.new_lines()
        yield from parse_entries(lines)
        if not lines:
            time.sleep(FOLLOW_SECONDS)


def _print(entry: LogEntry, as_json: bool) -> None:
    if as_json:
        line = plain(entry)
        del line["raw"]
        print(encode(line).decode(), flush=True)
    elif entry.level in COLOURS:
        print(apply_style(entry.raw, COLOURS[entry.level]), flush=True)
    else:
        print(entry.raw, flush=True)


def _print_files(home: Home, as_json: bool) -> None:
    patterns = ("*.log*", "mcp/*.log*")
    paths = [path for pattern in patterns for path in sorted(home.logs.glob(pattern))]
    for path in paths:
        size = path.stat().st_size
        if as_json:
            print(encode({"path": str(path), "bytes": size}).decode())
        else:
            print(f"{size:>12,}  {path}")
    if not paths and not as_json:
        print(f"There are no logs in {home.logs} yet.", file=sys.stderr)
