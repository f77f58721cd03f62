"""Configures logging for a home: files, line format, redaction and rate limiting."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar

from hermes.config.load import Config
from hermes.config.rotation import RotatingFile
from hermes.config.secrets import MIN_MASKED_LENGTH, mask

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
    """Returns a function that masks these values in a text."""
    known = sorted({v for v in values if len(v) >= MIN_MASKED_LENGTH}, key=len, reverse=True)

    def redact(text: str) -> str:
        for value in known:
            if value in text:
                text = text.replace(value, mask(value))
        return text

    return redact


class LineFormatter(logging.Formatter):
    """`2026-02-25 14:30:52.123 INFO [session] logger: message fact=value`, with the
    traceback indented below, so that a line that begins with a date begins an entry."""

    def __init__(self, redact: Redact) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        session = getattr(record, "session_id", "") or session_tag.get() or "-"
        head = f"{stamp}.{int(record.msecs):03d} {record.levelname} [{session}] {record.name}: "
        return head + self._redact(_body(record))


def _body(record: logging.LogRecord) -> str:
    body = _one_line(record_text(record))
    if repeated := getattr(record, "repeated", 0):
        body += f" (and {repeated} more times since)"
    if record.exc_info:
        trace = logging.Formatter().formatException(record.exc_info)
        body += "".join(f"\n  {_one_line(line)}" for line in trace.splitlines())
    return body


def record_text(record: logging.LogRecord) -> str:
    """The message of a record with its `extra` fields."""
    facts = [f" {k}={v}" for k, v in record.__dict__.items() if k not in _OWN_FIELDS]
    try:
        message = record.getMessage()
    except (TypeError, ValueError):  # placeholders and arguments do not match
        message = str(record.msg)
    return message + "".join(facts)


def _one_line(text: str) -> str:
    """Escapes control characters, so that text cannot forge an entry or control a terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class RepeatFilter(logging.Filter):
    """Passes one of several identical warnings per minute, with the number suppressed."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        fault = (record.name, record.levelno, record_text(record), _error_kind(record))
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


def _error_kind(record: logging.LogRecord) -> object:
    return (record.exc_info[0], str(record.exc_info[1])) if record.exc_info else None


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
    """Logs to `agent.log` from the configured level, to `errors.log` from WARNING, and with
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
