"""The input history, in a file that only its owner can read."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from prompt_toolkit.history import FileHistory

from hermes.config.home import Home
from hermes.core.errors import ConfigError

log = logging.getLogger(__name__)

# Enough for any search, and fast to read.
NEWEST_BYTES = 512 * 1024


class PrivateHistory(FileHistory):
    """Creates no file before the first line. If the home is not writable, only the history is
    lost. Secrets are masked."""

    def __init__(self, home: Home) -> None:
        super().__init__(home.history)
        self._home = home
        self._redactor: Callable[[str], str] | None = None

    def load_history_strings(self) -> Iterable[str]:
        try:
            with self._home.history.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - NEWEST_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return []
        return reversed(_entries(text))

    def store_string(self, string: str) -> None:
        try:
            lines = "".join(f"+{line}\n" for line in self._redact(string).split("\n"))
            self._home.ensure_folder(self._home.root)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            file = os.open(self._home.history, flags, 0o600)
            try:
                os.write(file, f"\n{lines}".encode("utf-8", "replace"))
            finally:
                os.close(file)
        except (OSError, ConfigError) as error:
            log.warning("history not saved", extra={"why": str(error)})

    def _redact(self, text: str) -> str:
        if self._redactor is None:
            # Not loaded before the first prompt, for a fast start.
            from hermes.credentials.redaction import line_redactor

            self._redactor = line_redactor(self._home)
        return self._redactor(text)


def _entries(text: str) -> list[str]:
    """An entry is a run of lines that begin with a plus sign."""
    found: list[str] = []
    lines: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.startswith("+"):
            lines.append(line[1:])
        elif lines:
            found.append("\n".join(lines))
            lines = []
    return found
