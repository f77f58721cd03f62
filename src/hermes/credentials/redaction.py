"""The redactor of a run: collects the known secrets and masks them. Loads the rules on first
use."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode
from hermes.config.child_environment import hidden_values
from hermes.config.environment import is_maskable, process_environment, read_env_file
from hermes.config.home import Home, resolve_home
from hermes.config.load import Config, find_named_secrets, load
from hermes.core.errors import HermesError

if TYPE_CHECKING:
    from hermes.policy.redact.redactor import RedactedStream, Redactor
    from hermes.policy.redact.spans import Channel

# Shorter texts cannot contain a recognizable secret.
SHORTEST = 6
_CACHE_SIZE = 256
_CACHED_CHARS = 200_000
# How long after the start of a tool the rules are loaded, and a text that needs all of them.
_LOAD_SECONDS = 0.05
_SAMPLE = "user@host: exit_code=0 [2/3] 12:34:56 https://localhost:8080/a?b=c {'path': '/usr/bin'}"


class SecretSource:
    """Values that may grow during the run. They are read again when `file` or `count` changes."""

    def __init__(
        self, values: Callable[[], Iterable[str]], file: Path, count: Callable[[], int] = int
    ) -> None:
        self._values = values
        self._file = str(file)
        self._count = count
        self._stamp: tuple[int, int, int] | None = None

    def new_values(self) -> Iterable[str]:
        """Return all values if they may have changed since the last call, else none."""
        now = (*_stamp(self._file), self._count())
        if now == self._stamp:
            return ()
        self._stamp = now
        return self._values()


class SecretRedactor:
    """Masks every configured value: from `.env`, the settings, the process and, once added, logins.
    `security.redact_secrets: false` disables detection by format; configured values are always
    masked. The rules are loaded with the first text that needs them."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        home = config.home
        self._formats = config.settings.security.redact_secrets
        self._config = config
        self._env = env
        self._sources = [SecretSource(self._configured_values, home.env_file)]
        self._values: set[str] = set()
        self._redactor: Redactor | None = None
        self._is_loading = False
        self._lock = Lock()
        self._clean: dict[tuple[str, str], str] = {}
        self._harmless: set[str] = set()
        self._seconds = 0.0
        self._due = 0.0
        # Messages with secrets, as a person typed them and as the journal holds them.
        self.typed: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"SecretRedactor({len(self._values)})"

    def watch(
        self, values: Callable[[], Iterable[str]], file: Path, count: Callable[[], int] = int
    ) -> None:
        """Add a source of values that is read again when the file or the count changes."""
        self._sources.append(SecretSource(values, file, count))

    def enable_burst_caching(self, seconds: float) -> None:
        """Check for new values at most this often: many sessions ask at once."""
        self._seconds = seconds

    def know(self, *values: str) -> None:
        """Add secrets that were just entered."""
        fresh = {value for value in values if is_maskable(value)} - self._values
        if fresh:
            with self._lock:
                self._values |= fresh
                self._clean.clear()
                self._harmless.clear()
                if self._redactor is not None:
                    self._redactor.know(fresh)

    def values(self) -> frozenset[str]:
        """Return all values known now."""
        self.refresh()
        return frozenset(self._values)

    def count(self) -> int:
        """Return the number of known values; it never decreases."""
        self.refresh()
        return len(self._values)

    def refresh(self) -> None:
        """Check for new values. For many texts, call this once and then `clean`."""
        if self._seconds:
            now = time.monotonic()
            if now < self._due:
                return
            self._due = now + self._seconds
        for source in self._sources:
            if values := source.new_values():
                self.know(*values)

    def text(self, text: str, channel: Channel = "model") -> str:
        """Return the text without secrets: labels for models, screens and the journal, masks for
        logs and exports."""
        if len(text) < SHORTEST:
            return text
        self.refresh()
        return self.clean(text, channel)

    def clean(self, text: str, channel: Channel = "model") -> str:
        """Redact like `text`, without checking for new values."""
        if len(text) < SHORTEST:
            return text
        # Cached: a result passes here on its way to the journal, the model and the log.
        if (cached := self._clean.get((channel, text))) is not None:
            return cached
        known = self.redactor.found_count
        clean = self.redactor.redact(text, channel).text
        if self.redactor.found_count != known:
            # Texts from before may contain what was found only now.
            self._clean.clear()
            self._harmless.clear()
        if len(clean) <= _CACHED_CHARS:
            if len(self._clean) >= _CACHE_SIZE:
                self._clean.clear()
            self._clean[channel, text] = self._clean[channel, clean] = clean
        return clean

    def redact_secrets(self, text: str) -> str:
        """Redact secrets, but no phone numbers, for text that quotes a person's own words."""
        spans = [span for span in self.redactor.spans(text) if span.kind != "phone"]
        return self.redactor.written(text, spans, "model").text if spans else text

    def redact_typed(self, text: str) -> str:
        """Return a person's own words for the journal. If something is masked, the model gets the
        text as typed."""
        clean = self.redact_secrets(text)
        if clean != text:
            self.typed[text] = clean
        return clean

    def line(self, text: str) -> str:
        """Mask secrets in text for logs, exports and other output for people."""
        return self.text(text, "log")

    def redact_known(self, text: str) -> str:
        """Mask configured values only, in texts that were already redacted. Until the rules are
        loaded, texts are Hermes' own, in which a value occurs only verbatim."""
        if not self._values:
            self.refresh()
        if not self._values or len(text) < SHORTEST or ("model", text) in self._clean:
            return self._clean.get(("model", text), text)
        if self._redactor is None and not any(value in text for value in self._values):
            return text
        return self.redactor.redact_known(text, "model").text

    def is_secret(self, name: str) -> bool:
        """Return whether a name that would be stored and shown is, or looks like, a secret."""
        self.refresh()
        if name in self._harmless:
            return False
        # Most names need no full scan, which is slow to load.
        from hermes.policy.redact.fast_path import is_plain

        check = self.redact_known if is_plain(name) else self.clean
        if check(name) != name:
            return True
        if len(self._harmless) >= _CACHE_SIZE:
            self._harmless.clear()
        self._harmless.add(name)
        return False

    def marks(self, text: str) -> list[tuple[int, int, str]]:
        """Return the start, end and replacement of each secret."""
        self.refresh()
        redactor = self.redactor
        spans = redactor.spans(text)
        return [(span.start, span.end, redactor.label(text, span, "model")) for span in spans]

    def stream(self) -> RedactedStream:
        """Return a redactor for text that arrives in pieces."""
        self.refresh()
        from hermes.policy.redact.redactor import RedactedStream

        return RedactedStream(self.redactor, "model")

    @property
    def is_loaded(self) -> bool:
        """Whether every encoding of a value is found."""
        return self._redactor is not None

    @property
    def redactor(self) -> Redactor:
        return self._redactor or self.load()

    def load_soon(self) -> None:
        """Load the rules while a tool runs, so that its result need not wait for them. A tool that
        ends earlier loads them itself."""
        if not self._is_loading:
            self._is_loading = True
            loop = asyncio.get_running_loop()
            loop.call_later(_LOAD_SECONDS, lambda: self.redactor.redact(_SAMPLE))

    def load(self) -> Redactor:
        """Load the rules, so that every encoding of a value is found."""
        from hermes.policy.redact.redactor import Redactor

        with self._lock:
            if self._redactor is None:
                self._redactor = Redactor(self._values, formats=self._formats)
                self._harmless.clear()
            return self._redactor

    def _configured_values(self) -> Iterable[str]:
        from_file = read_env_file(self._config.home).secret_values()
        return (*self._config.secret_values(), *hidden_values(self._env), *from_file)


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)  # noqa: PTH116 - called for every event
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def line_redactor(home: Home) -> Callable[[str], str]:
    """Return a redactor for commands that have no run."""
    redactors: list[SecretRedactor] = []

    def clean(text: str) -> str:
        if not redactors:
            env = process_environment()
            redactor = SecretRedactor(load(home, env=env), env)
            accounts = home.root / "auth.json"
            redactor.watch(lambda: _tokens(accounts), accounts)
            redactors.append(redactor)
        return redactors[0].line(text)

    return clean


def redact_error(text: str) -> str:
    """Redact an error message after the run has ended."""
    env = process_environment()
    try:
        return line_redactor(resolve_home(env))(text)
    except HermesError:
        from hermes.policy.redact.redactor import Redactor

        return Redactor(hidden_values(env)).redact(text).text


def _tokens(file: Path) -> list[str]:
    """Yield the values in a JSON file whose names denote secrets."""
    try:
        return list(find_named_secrets(decode(dict, file.read_bytes())))
    except (OSError, DecodeError):
        return []
