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
from hermes.codec.values import JsonObject, Value
from hermes.commands.formatting import format_time, sanitize
from hermes.core.errors import UsageError
from hermes.credentials.redaction import line_redactor
from hermes.surfaces.cli.command_context import Role, apply_style, home_of

FOLLOW_SECONDS = 0.25
# A line for people, and the same for scripts.
Shown = tuple[str, JsonObject]


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
        try:
            moved = not os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            moved = True
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


def _decode(data: bytes) -> list[str]:
    return [f"{line}\n" for line in data.decode(errors="replace").split("\n") if line]


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
COLOURS: dict[str, Role] = {"WARNING": "warn", "ERROR": "error", "CRITICAL": "error"}
_HEAD = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) (?P<level>[A-Z]+) "
    r"\[(?:-|(?P<session>[^\]]*))\] (?P<logger>[^\s:]+): (?P<text>.*)",
    re.DOTALL,
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


@click.command(
    help="Show the newest log entries, the stderr of MCP servers (mcp), or the log files (list)."
)
@click.argument("name", type=click.Choice(["agent", "errors", "mcp", "list"]), default="agent")
@click.option(
    "-n", "--lines", default=50, type=click.IntRange(min=0), help="Show this many entries."
)
@click.option("-f", "--follow", is_flag=True, help="Print new entries as they are written.")
@click.option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="DEBUG",
    help="Show only this level and above.",
)
@click.option("--session", default="", metavar="ID", help="Show only this session (id or prefix).")
@click.option(
    "--component", type=click.Choice(sorted(COMPONENTS)), help="Show only this component."
)
@click.option("--since", metavar="AGE", help="Show only entries newer than 30m, 12h, 2d …")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per entry.")
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
    path, folder, missing = home.logs / f"{name}.log", home.logs / "mcp", ""
    if name == "list":
        shown = file_rows(home.logs)
        if not as_json and not any(file_rows(home.logs)):
            missing = f"There are no logs in {home.logs} yet."
    elif name == "mcp":
        if session or component or since:
            raise UsageError(
                "MCP logs have no dates; leave out --session, --component and --since."
            )
        shown = mcp_lines(folder, line_redactor(home), lines, follow=follow)
        if not any(folder.glob("*.log")):
            missing = f"There are no MCP server logs in {folder} yet."
    else:
        wanted = LogFilter(
            level=level,
            session=session,
            since=format_time(time.time() - age_seconds(since)) if since else "",
            component=component or "",
        )
        shown = log_entries(path, wanted, lines, follow=follow)
        if not path.exists():
            missing = (
                f"Nothing has been logged to {path} yet; `hermes config set logging.level DEBUG` "
                "logs more, and `hermes trace ID` shows the events of a session."
            )
    if missing:
        print(missing, file=sys.stderr)
    for text, data in shown:
        print(encode(data).decode() if as_json else text, flush=True)


def file_rows(folder: Path) -> Iterator[Shown]:
    for pattern in ("*.log*", "mcp/*.log*"):
        for path in sorted(folder.glob(pattern)):
            size = path.stat().st_size
            yield f"{size:>12,}  {path}", {"path": str(path), "bytes": size}


def mcp_lines(
    folder: Path, mask: Callable[[str], str], count: int, *, follow: bool
) -> Iterator[Shown]:
    """The newest lines of each server. They are untrusted: they may contain secrets or terminal
    control sequences."""

    def shown(file: Path, line: str) -> Shown:
        text = sanitize(mask(line.rstrip("\n")))
        return f"[{file.stem}] {text}", {"server": file.stem, "text": text}

    files = sorted(folder.glob("*.log"))
    with ExitStack() as stack:
        tails = {file: stack.enter_context(closing(Tail(file))) for file in files}
        for file in files:
            newest_lines: deque[str] = deque(maxlen=count)
            for part in reversed([*rotated_files(file)]):
                with part.open(encoding="utf-8", errors="replace") as stream:
                    newest_lines.extend(stream)
            yield from (shown(file, line) for line in newest_lines)
        while follow and files:
            new = [(file, line) for file, tail in tails.items() for line in tail.new_lines()]
            yield from (shown(file, line) for file, line in new)
            if not new:
                time.sleep(FOLLOW_SECONDS)


def log_entries(path: Path, wanted: LogFilter, count: int, *, follow: bool) -> Iterator[Shown]:
    def shown(entry: LogEntry) -> Shown:
        data = plain(entry)
        del data["raw"]
        role = COLOURS.get(entry.level)
        return apply_style(entry.raw, role) if role else entry.raw, data

    # Opened before the old entries are read: a line may appear twice, but none is lost.
    with closing(Tail(path)) as tail:
        yield from map(shown, newest(path, wanted, count))
        while follow:
            lines = tail.new_lines()
            yield from (shown(entry) for entry in parse_entries(lines) if entry in wanted)
            if not lines:
                time.sleep(FOLLOW_SECONDS)


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
    raw = block.rstrip("\n")
    match = _HEAD.match(raw)
    if match is not None and match["level"] in LEVELS:
        yield LogEntry(raw=raw, **match.groupdict(default=""))
