"""The stored record of a background process, from which a later Hermes resumes it."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.codec.whole_files import replace_file


class ProcessRecord(Value):
    """`pid` is 0 until the process is known to run. `identity` tells it from a later process with
    that pid. `polled` is the position up to which output was returned, `watched` up to which it was
    searched for the words in `watch`; `told` says whether the end was reported."""

    id: str
    command: str
    cwd: str
    started_at: float
    pid: int = 0
    identity: str = ""
    notify: bool = False
    watch: tuple[str, ...] = ()
    told: bool = False
    polled: int = 0
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
