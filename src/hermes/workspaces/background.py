"""One background process: its record, its log and its end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.ports import ProcessInfo, ProcessNotice
from hermes.core.world import Clock
from hermes.workspaces.notices import NoticeQueue, OutputWatch
from hermes.workspaces.runner import complete_characters, plain_text

log = logging.getLogger(__name__)

KEPT_BYTES = 200_000
# Trimmed at this size; the process never has to stop writing.
TRIM_AT_BYTES = 4_000_000


class ProcessLog:
    """The output file of one process. Positions count from the first byte that the process wrote.
    Bytes that a trim removes from the file but that still belong to the kept part move to a second
    file."""

    def __init__(
        self,
        path: Path,
        *,
        trimmed_bytes: int = 0,
        kept_bytes: int = KEPT_BYTES,
        trim_at_bytes: int = TRIM_AT_BYTES,
    ) -> None:
        self.path = path
        self._kept_bytes = kept_bytes
        self._trim_at_bytes = trim_at_bytes
        self.trimmed_bytes = trimmed_bytes
        self._older = path.with_suffix(".older")

    @property
    def end(self) -> int:
        return self.trimmed_bytes + self._size()

    def text_from(self, position: int, *, final: bool) -> tuple[str, int]:
        """Return the output since `position`, as far as it is kept, and the position after it. An
        incomplete last character is held back unless `final` is set."""
        raw, start = self._read_kept()
        fresh = raw[max(0, position - start) :]
        if not final:
            fresh = complete_characters(fresh)
        return plain_text(fresh), max(position, start) + len(fresh)

    def lines(self) -> list[str]:
        """Return the kept lines, the last one possibly unfinished."""
        return plain_text(self._read_kept()[0]).splitlines()

    def tail(self, characters: int) -> str:
        return plain_text(self._read_kept()[0])[-characters:]

    def trim(self) -> bool:
        """Shorten a long file; return whether it was shortened."""
        size = self._size()
        if size < self._trim_at_bytes:
            return False
        raw, _ = self._read_kept()
        replace_file(self._older, raw, durable=False, folders=False)
        # The process appends, so it continues at the new end. What it wrote since the read is lost.
        os.truncate(self.path, 0)
        self.trimmed_bytes += size
        return True

    def _read_kept(self) -> tuple[bytes, int]:
        """Return the newest bytes, from the start of a line, and the position of the first."""
        end = self.end
        # One extra byte shows whether a line begins right after it.
        raw = _last_bytes(self.path, self._kept_bytes + 1)
        if self.trimmed_bytes and len(raw) <= self._kept_bytes:
            raw = _last_bytes(self._older, self._kept_bytes + 1) + raw
        if (surplus := len(raw) - self._kept_bytes) > 0:
            line = raw.find(b"\n", surplus - 1) + 1
            raw = raw[line or surplus :]
        return raw, end - len(raw)

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0


def _last_bytes(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - count))
            return file.read(count)
    except FileNotFoundError:
        return b""


class ProcessRecord(Value):
    """The stored state of a background process."""

    id: str
    command: str
    cwd: str
    started_at: float
    # 0 until the process is known to run.
    pid: int = 0
    # Tells the process from a later one with the same pid.
    identity: str = ""
    notify: bool = False
    # Words that are reported when they appear in the output.
    watch: tuple[str, ...] = ()
    # The end was reported.
    told: bool = False
    # The position up to which output was returned.
    polled: int = 0
    # The position up to which output was searched for `watch`.
    watched: int = 0
    input_closed: bool = False
    trimmed_bytes: int = 0
    notices: int = 0
    ended_at: float | None = None
    exit_code: int | None = None


class ProcessFolder:
    """The files of one process: record, output, input pipe and exit code."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "output.log"
        self.stdin = path / "stdin"
        self.exit = path / "exit"
        self.ready = path / "ready"
        self.script = path / "script.sh"
        self._record = path / "record.json"

    def make(self, record: ProcessRecord) -> None:
        self.path.mkdir(parents=True, mode=0o700)
        # A confined keeper may write these two, but create nothing here.
        for file in (self.exit, self.ready):
            file.touch(mode=0o600)
        self.write(record)

    def read(self) -> ProcessRecord | None:
        try:
            return decode(ProcessRecord, self._record.read_bytes())
        except (FileNotFoundError, NotADirectoryError, DecodeError):
            return None

    def write(self, record: ProcessRecord) -> None:
        replace_file(self._record, encode(record), durable=False, folders=False)

    def exit_code(self) -> int | None:
        """Return what the keeper wrote; None while the process runs, or when the keeper was
        killed."""
        try:
            text = self.exit.read_text()
        except FileNotFoundError:
            return None
        return int(text) if text.endswith("\n") else None

    def exit_time(self) -> float | None:
        try:
            found = self.exit.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime if found.st_size else None

    def is_ready(self) -> bool:
        try:
            return self.ready.stat().st_size > 0
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        if self.path.is_dir():
            for file in self.path.iterdir():
                file.unlink(missing_ok=True)
            self.path.rmdir()


NOTICE_CHARACTERS = 2_000
HIT_LINES = 20
HIT_CHARACTERS = 300

# Registers a callback for the end of a process and returns a function that cancels it.
Follow = Callable[
    [ProcessRecord, ProcessFolder, Callable[[int | None], None]], Callable[[], None] | None
]


class BackgroundProcess:
    def __init__(
        self,
        record: ProcessRecord,
        folder: ProcessFolder,
        watch: OutputWatch,
        clock: Clock,
        notices: NoticeQueue,
    ) -> None:
        self.record = record
        self.folder = folder
        self.log = ProcessLog(folder.log, trimmed_bytes=record.trimmed_bytes)
        self.ended = asyncio.Event()
        self._watch = watch
        self._clock = clock
        self._notices = notices
        self._forget: Callable[[], None] | None = None

    def begin(self, follow: Follow) -> None:
        """Wait for the end, which may already have happened."""
        if self.record.ended_at is not None or not self.record.pid:
            self._end(None)
        else:
            self._forget = follow(self.record, self.folder, self._end)

    def release(self) -> None:
        if self._forget:
            self._forget()

    def mark_ended(self, code: int) -> None:
        """Record an end that no watch reported."""
        self.release()
        self._end(code)

    @property
    def running(self) -> bool:
        return not self.ended.is_set()

    def update(self, **changes: Any) -> None:
        """Update the record in memory and on disk; a full disk loses only the file."""
        self.record = replace(self.record, **changes)
        try:
            self.folder.write(self.record)
        except OSError:
            log.warning("process record not written", extra={"process": self.record.id})

    def info(self, output: str = "", *, total_lines: int = 0) -> ProcessInfo:
        return ProcessInfo(
            id=self.record.id,
            command=self.record.command,
            cwd=self.record.cwd,
            pid=self.record.pid,
            started_at=self.record.started_at,
            status="running" if self.running else "exited",
            exit_code=self.record.exit_code,
            notify=self.record.notify,
            is_watched=(self.record.notify and not self.record.told)
            or bool(self.running and self.record.watch),
            output=output,
            total_lines=total_lines,
        )

    def read_new_output(self) -> str:
        """Return the output since the last call."""
        text, position = self.log.text_from(self.record.polled, final=not self.running)
        if position != self.record.polled:
            self.update(polled=position)
        return text

    def trim(self) -> None:
        try:
            if self.log.trim():
                self.update(trimmed_bytes=self.log.trimmed_bytes)
        except OSError:
            log.warning("process log not trimmed", extra={"process": self.record.id})

    def check_output(self, *, final: bool = False) -> None:
        """Report watched words in new output, and with `final` in an unfinished last line. Too many
        reports disable the watch, and then the end is reported."""
        hits: list[str] = []
        if not self._watch.disabled:
            text, position = self.log.text_from(self.record.watched, final=not self.running)
            self.record = replace(self.record, watched=position)
            hits = self._watch.find_hits(text)
        if final:
            hits += self._watch.find_last_hits()
        if not hits:
            return
        admitted = self._watch.may_notify(self._clock.monotonic())
        if self._watch.disabled and self.record.watch:
            self.update(watch=(), notify=True)
        if admitted:
            self.update(notices=self.record.notices + 1)
            lines = "\n".join(hit.strip()[:HIT_CHARACTERS] for hit in hits[-HIT_LINES:])
            self._notify(f"watch:{self.record.notices}", "wrote a watched pattern", lines)

    def _end(self, code: int | None) -> None:
        if self.record.ended_at is None:
            written = self.folder.exit_code()
            self.update(
                exit_code=code if written is None else written,
                ended_at=self.folder.exit_time() or self._clock.now(),
            )
        self.ended.set()
        self.check_output(final=True)
        if self.record.notify and not self.record.told:
            shown = "code unknown" if self.record.exit_code is None else self.record.exit_code
            output = self.log.tail(NOTICE_CHARACTERS).strip()
            self._notify("ended", f"completed (exit {shown})", output)

    def _notify(self, kind: str, what: str, output: str) -> None:
        record = self.record
        text = (
            f"[SYSTEM: Background process {record.id} {what}. "
            f"Command: {record.command} Output: {output}]"
        )
        key = f"{record.id}:{kind}"
        self._notices.add(ProcessNotice(key=key, process_id=record.id, text=text))
