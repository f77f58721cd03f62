"""The one redactor of a run: which values it knows, and who asks it. Loaded when it is needed."""

from __future__ import annotations

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

# Shorter texts hold no secret that could be told from an ordinary word.
SHORTEST = 6
_REMEMBERED = 256
_REMEMBERED_CHARS = 200_000


class SecretSource:
    """Values that may grow while the program runs. A new content of `file`, or another `count`,
    tells that they have."""

    def __init__(
        self, values: Callable[[], Iterable[str]], file: Path, count: Callable[[], int] = int
    ) -> None:
        self._values = values
        self._file = str(file)
        self._count = count
        self._stamp: tuple[int, int, int] | None = None

    def new_values(self) -> Iterable[str]:
        """All values if there may be new ones since the last time, else none."""
        now = (*_stamp(self._file), self._count())
        if now == self._stamp:
            return ()
        self._stamp = now
        return self._values()


class SecretRedactor:
    """Knows every configured value: of `.env`, the settings, the process and, once they are added,
    of logins. `security.redact_secrets: false` leaves what only looks like a secret; configured
    values are masked in any case. Nothing is loaded before the first text that needs it."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        home = config.home
        self._formats = config.settings.security.redact_secrets
        self._config = config
        self._env = env
        self._sources = [SecretSource(self._configured_values, home.env_file)]
        self._values: set[str] = set()
        self._redactor: Redactor | None = None
        self._lock = Lock()
        self._clean: dict[tuple[str, str], str] = {}
        self._harmless: set[str] = set()
        self._seconds = 0.0
        self._due = 0.0

    def __repr__(self) -> str:
        return f"Secrecy({len(self._values)})"

    def watch(
        self, values: Callable[[], Iterable[str]], file: Path, count: Callable[[], int] = int
    ) -> None:
        """Values that come from elsewhere, asked for again when the file or the count changes."""
        self._sources.append(SecretSource(values, file, count))

    def enable_burst_caching(self, seconds: float) -> None:
        """Look for new values so often at most: many sessions ask in one instant."""
        self._seconds = seconds

    def know(self, *values: str) -> None:
        """Secrets that were given just now."""
        fresh = {value for value in values if is_maskable(value)} - self._values
        if fresh:
            with self._lock:
                self._values |= fresh
                self._clean.clear()
                self._harmless.clear()
                if self._redactor is not None:
                    self._redactor.know(fresh)

    def values(self) -> frozenset[str]:
        """All that is known at this moment."""
        self.refresh()
        return frozenset(self._values)

    def count(self) -> int:
        """How many values are known; it only grows."""
        self.refresh()
        return len(self._values)

    def refresh(self) -> None:
        """Look for new values. Whoever has many texts at once looks once and uses `clean`."""
        if self._seconds:
            now = time.monotonic()
            if now < self._due:
                return
            self._due = now + self._seconds
        for source in self._sources:
            if news := source.new_values():
                self.know(*news)

    def text(self, text: str, channel: Channel = "model") -> str:
        """Without secrets. Models, screens and the journal get labels, logs and exports masks."""
        if len(text) < SHORTEST:
            return text
        self.refresh()
        return self.clean(text, channel)

    def clean(self, text: str, channel: Channel = "model") -> str:
        """The same, by what is known already."""
        if len(text) < SHORTEST:
            return text
        known = self._clean.get((channel, text))
        return self._redact(text, channel) if known is None else known

    def line(self, text: str) -> str:
        """For logs, exports and whatever else is written for people."""
        return self.text(text, "log")

    def known(self, text: str) -> str:
        """Without configured values; for texts whose other secrets have been masked before. What
        comes before the redactor is needed at all is our own words: in those a value can only
        stand as it is written."""
        if not self._values:
            self.refresh()
        if not self._values or len(text) < SHORTEST or ("model", text) in self._clean:
            return self._clean.get(("model", text), text)
        if self._redactor is None and not any(value in text for value in self._values):
            return text
        return self.redactor.redact_known(text, "model").text

    def is_secret(self, name: str) -> bool:
        """For a name that is kept and shown as it is: whether it is a value, or looks like one."""
        self.refresh()
        if name in self._harmless:
            return False
        # Hardly any name deserves the proper look, and that takes long to load.
        from hermes.policy.redact.fast_path import is_plain

        look = self.known if is_plain(name) else self.clean
        if look(name) != name:
            return True
        if len(self._harmless) >= _REMEMBERED:
            self._harmless.clear()
        self._harmless.add(name)
        return False

    def marks(self, text: str) -> list[tuple[int, int, str]]:
        """Where secrets begin and end, and what `text` puts in their place."""
        self.refresh()
        redactor = self.redactor
        spans = redactor.spans(text)
        return [(span.start, span.end, redactor.label(text, span, "model")) for span in spans]

    def stream(self) -> RedactedStream:
        """For a text that comes in pieces."""
        self.refresh()
        from hermes.policy.redact.redactor import RedactedStream

        return RedactedStream(self.redactor, "model")

    def load(self) -> None:
        """From now on every form of a value is looked for."""
        self._load()

    @property
    def is_loaded(self) -> bool:
        """Whether every form of a value is looked for already."""
        return self._redactor is not None

    @property
    def redactor(self) -> Redactor:
        return self._redactor or self._load()

    def _load(self) -> Redactor:
        from hermes.policy.redact.redactor import Redactor

        with self._lock:
            if self._redactor is None:
                self._redactor = Redactor(self._values, formats=self._formats)
                self._harmless.clear()
            return self._redactor

    def _configured_values(self) -> Iterable[str]:
        written = read_env_file(self._config.home).secret_values()
        return (*self._config.secret_values(), *hidden_values(self._env), *written)

    def _redact(self, text: str, channel: Channel) -> str:
        """The answer is kept: a result passes on its way to the journal, the model and the log."""
        clean = self.redactor.redact(text, channel).text
        if len(clean) <= _REMEMBERED_CHARS:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            self._clean[channel, text] = self._clean[channel, clean] = clean
        return clean


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)  # noqa: PTH116 - asked for with every event
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def line_redactor(home: Home) -> Callable[[str], str]:
    """For those who have no run to ask: what is said or written without an app."""
    made: list[SecretRedactor] = []

    def clean(text: str) -> str:
        if not made:
            env = process_environment()
            secrecy = SecretRedactor(load(home, env=env), env)
            accounts = home.root / "auth.json"
            secrecy.watch(lambda: _tokens(accounts), accounts)
            made.append(secrecy)
        return made[0].line(text)

    return clean


def redact_error(text: str) -> str:
    """The words of an error that nobody has cleaned: the run that met it is over."""
    env = process_environment()
    try:
        return line_redactor(resolve_home(env))(text)
    except HermesError:
        from hermes.policy.redact.redactor import Redactor

        return Redactor(hidden_values(env)).redact(text).text


def _tokens(file: Path) -> list[str]:
    """What stands in a JSON file under the name of a secret."""
    try:
        return list(find_named_secrets(decode(dict, file.read_bytes())))
    except (OSError, DecodeError):
        return []
