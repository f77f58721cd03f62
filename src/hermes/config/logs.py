"""Configures logging for a home: rotated files, line format, redaction and rate limiting."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import TextIO

from hermes.codec.file_lock import FileLock
from hermes.config.environment import MIN_MASKED_LENGTH, mask
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.errors import describe_shortage

_REPORTED = (EACCES, EPERM, EROFS)


class RotatingFile(logging.Handler):
    """Writes to `path`; a full file becomes `path.1`, the previous `path.1` becomes `path.2`.
    Several processes may write to the same files: one rotates under a lock, the others reopen.
    A line that cannot be redacted or written is dropped and never raises. The first such failure
    is reported on stderr, and the next line that is written follows the number of lost ones."""

    def __init__(self, home: Home, path: Path, *, max_bytes: int, backups: int) -> None:
        super().__init__()
        self._home = home
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._file: TextIO | None = None
        self._failure = ""
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + "\n"
            if self._dropped:
                self._append(f"{self._dropped} log lines were dropped: {self._failure}\n")
                self._dropped = 0
            self._append(line)
        except Exception as error:
            self._close_file()
            self._report(error)

    def _append(self, line: str) -> None:
        file = self._current()
        if file.tell() and file.tell() + len(line.encode()) > self._max_bytes:
            self._rotate(file)
            file = self._current()
        file.write(line)
        file.flush()

    def _report(self, error: Exception) -> None:
        # Only the reason: the text of an error may quote the line, with its secrets.
        self._dropped += 1
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        reason = cause.strerror if isinstance(cause, OSError) else None
        is_first, self._failure = not self._failure, reason or type(error).__name__
        # A read-only home or a shortage is reported where something has to be stored or opened.
        is_reported = isinstance(cause, OSError) and cause.errno in _REPORTED
        is_reported = is_reported or bool(describe_shortage(cause))
        if is_first and not is_reported and sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write(
                    f"hermes: cannot write the log {self._path} ({self._failure}); "
                    "log lines are dropped\n"
                )

    def close(self) -> None:
        self.acquire()
        try:
            self._close_file()
        finally:
            self.release()
        super().close()

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def _current(self) -> TextIO:
        if self._file is not None and not self._is_at_path(self._file):
            self._close_file()
        if self._file is None:
            self._home.ensure_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            self._file = os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
        self._file.seek(0, os.SEEK_END)
        return self._file

    def _is_at_path(self, file: TextIO) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except OSError:
            return False

    def _rotate(self, file: TextIO) -> None:
        lock = FileLock(self._path)
        try:
            lock.acquire()
            if self._is_at_path(file):
                if not self._backups:
                    self._path.unlink()
                for number in range(self._backups, 0, -1):
                    older = f".{number - 1}" if number > 1 else ""
                    with suppress(FileNotFoundError):
                        source = self._path.with_name(self._path.name + older)
                        source.replace(self._path.with_name(f"{self._path.name}.{number}"))
        finally:
            lock.close()
        self._close_file()


# The session of the running task, shown in each log line.
session_tag: ContextVar[str] = ContextVar("session_tag", default="")

AGENT_LOG = "agent.log"
ERRORS_LOG = "errors.log"
REPEAT_SECONDS = 60.0
_REMEMBERED_FAULTS = 256
# Libraries that log every request.
_NOISY = ("asyncio", "markdown_it")
_OWN_FIELDS = frozenset(
    {*logging.makeLogRecord({}).__dict__, "message", "asctime", "session_id", "repeated"}
)

# Control characters except tab.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")

Redact = Callable[[str], str]


def mask_values(values: Iterable[str]) -> Redact:
    """Return a function that masks these values in a text."""
    known = sorted({v for v in values if len(v) >= MIN_MASKED_LENGTH}, key=len, reverse=True)

    def redact(text: str) -> str:
        for value in known:
            if value in text:
                text = text.replace(value, mask(value))
        return text

    return redact


class LineFormatter(logging.Formatter):
    """Formats a line as `2026-02-25 14:30:52.123 INFO [session] logger: message fact=value`, with
    the traceback indented below, so that a line that begins with a date begins an entry."""

    def __init__(self, redact: Redact) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        session = getattr(record, "session_id", "") or session_tag.get() or "-"
        head = f"{stamp}.{int(record.msecs):03d} {record.levelname} [{session}] {record.name}: "
        body = _one_line(record_text(record))
        if repeated := getattr(record, "repeated", 0):
            body += f" (and {repeated} more times since)"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            body += "".join(f"\n  {_one_line(line)}" for line in trace.splitlines())
        return head + self._redact(body)


def record_text(record: logging.LogRecord) -> str:
    """Return the message of a record with its `extra` fields."""
    facts = [f" {k}={v}" for k, v in record.__dict__.items() if k not in _OWN_FIELDS]
    try:
        message = record.getMessage()
    except (TypeError, ValueError):  # placeholders and arguments do not match
        message = str(record.msg)
    return message + "".join(facts)


def _one_line(text: str) -> str:
    """Escape control characters, so that text cannot forge an entry or control a terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class RepeatFilter(logging.Filter):
    """Passes one of several identical warnings per minute, with the number suppressed."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        error = (record.exc_info[0], str(record.exc_info[1])) if record.exc_info else None
        fault = (record.name, record.levelno, record_text(record), error)
        since, count = self._seen.get(fault, (0.0, 0))
        if since and 0 <= record.created - since < REPEAT_SECONDS:
            self._seen[fault] = (since, count + 1)
            return False
        record.repeated = count
        self._seen.pop(fault, None)
        self._seen[fault] = (record.created, 0)
        if len(self._seen) > _REMEMBERED_FAULTS:
            del self._seen[next(iter(self._seen))]
        return True


class LogHandlers:
    """The log handlers of this process, until closed. No file exists before the first line."""

    def __init__(self, handlers: Iterable[logging.Handler]) -> None:
        self._handlers = tuple(handlers)
        self._root = logging.getLogger()
        self._level_before = self._root.level
        for handler in self._handlers:
            self._root.addHandler(handler)
        self._root.setLevel(min(handler.level for handler in self._handlers))

    def close(self) -> None:
        self._root.setLevel(self._level_before)
        for handler in self._handlers:
            self._root.removeHandler(handler)
            handler.close()


def start_logging(
    config: Config, *, redact: Redact | None = None, verbose: bool = False
) -> LogHandlers:
    """Log to `agent.log` from the configured level, to `errors.log` from WARNING, and with
    `verbose` to the terminal. `redact` filters every line; by default it masks the configured
    secrets. No setting disables redaction."""
    home, settings = config.home, config.settings.logging
    formatter = LineFormatter(redact or mask_values(config.secret_values()))
    handlers: list[logging.Handler] = []
    for name, level in ((AGENT_LOG, settings.level), (ERRORS_LOG, "WARNING")):
        size = settings.max_size_mb * 1_000_000
        path = home.logs / name
        file = RotatingFile(home, path, max_bytes=size, backups=settings.backup_count)
        file.setLevel(level)
        handlers.append(file)
    if verbose:
        handlers.append(logging.StreamHandler())
    for handler in handlers:
        handler.setFormatter(formatter)
        handler.addFilter(RepeatFilter())
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
    return LogHandlers(handlers)
