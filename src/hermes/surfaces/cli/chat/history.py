"""The lines that were typed in earlier runs, in a file for its owner only."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from prompt_toolkit.history import FileHistory

from hermes.config.home import Home
from hermes.core.errors import ConfigError

log = logging.getLogger(__name__)

# More than anybody goes back through, and read in a moment.
NEWEST_BYTES = 512 * 1024


class PrivateHistory(FileHistory):
    """Nothing is made before the first line is kept, and a home that cannot be written costs the
    history only. Secrets in a line are masked."""

    def __init__(self, home: Home) -> None:
        super().__init__(home.history)
        self._home = home
        self._clean: Callable[[str], str] | None = None

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
            lines = "".join(f"+{line}\n" for line in self._cleaned(string).split("\n"))
            self._home.folder(self._home.root)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            file = os.open(self._home.history, flags, 0o600)
            try:
                os.write(file, f"\n{lines}".encode("utf-8", "replace"))
            finally:
                os.close(file)
        except (OSError, ConfigError) as error:
            log.warning("history not kept", extra={"why": str(error)})

    def _cleaned(self, text: str) -> str:
        if self._clean is None:
            # By the first Enter this is loaded anyway; before the first prompt it is not.
            from hermes.credentials.redaction import words_for

            self._clean = words_for(self._home)
        return self._clean(text)


def _entries(text: str) -> list[str]:
    """Runs of lines that begin with a plus sign; anything else stands between two entries."""
    found: list[str] = []
    lines: list[str] = []
    for line in (*text.split("\n"), ""):
        if line.startswith("+"):
            lines.append(line[1:])
        elif lines:
            found.append("\n".join(lines))
            lines = []
    return found
