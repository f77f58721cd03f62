"""One background process: its record, its output and its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from hermes.core.ports import ProcessInfo, ProcessNotice
from hermes.core.world import Clock
from hermes.workspaces.process_log import ProcessLog
from hermes.workspaces.process_record import ProcessFolder, ProcessRecord
from hermes.workspaces.watch import OutputWatch

log = logging.getLogger(__name__)

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
        on_end: Callable[[BackgroundProcess], None],
    ) -> None:
        self.record = record
        self.folder = folder
        self.log = ProcessLog(folder.log, trimmed_bytes=record.trimmed_bytes)
        self.ended = asyncio.Event()
        self._watch = watch
        self._clock = clock
        self._on_end = on_end
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

    def find_new_hits(self) -> Sequence[str]:
        if self._watch.disabled:
            return []
        text, position = self.log.text_from(self.record.watched, final=not self.running)
        self.record = replace(self.record, watched=position)
        return self._watch.find_hits(text)

    def find_last_hits(self) -> Sequence[str]:
        return [*self.find_new_hits(), *self._watch.find_last_hits()]

    def may_report_hits(self) -> bool:
        """Return whether hits may be reported. Too many disable the watch, and then the end is
        reported."""
        admitted = self._watch.may_notify(self._clock.monotonic())
        if self._watch.disabled and self.record.watch:
            self.update(watch=(), notify=True)
        return admitted

    def end_notice(self, key: str) -> ProcessNotice:
        code = "code unknown" if self.record.exit_code is None else self.record.exit_code
        output = self.log.tail(NOTICE_CHARACTERS).strip()
        text = (
            f"[SYSTEM: Background process {self.record.id} completed (exit {code}). "
            f"Command: {self.record.command} Output: {output}]"
        )
        return ProcessNotice(key=key, process_id=self.record.id, text=text)

    def hit_notice(self, key: str, hits: Sequence[str]) -> ProcessNotice:
        lines = "\n".join(hit.strip()[:HIT_CHARACTERS] for hit in hits[-HIT_LINES:])
        text = (
            f"[SYSTEM: Background process {self.record.id} wrote a watched pattern. "
            f"Command: {self.record.command} Output: {lines}]"
        )
        return ProcessNotice(key=key, process_id=self.record.id, text=text)

    def _end(self, code: int | None) -> None:
        if self.record.ended_at is None:
            written = self.folder.exit_code()
            self.update(
                exit_code=code if written is None else written,
                ended_at=self.folder.exit_time() or self._clock.now(),
            )
        self.ended.set()
        self._on_end(self)
