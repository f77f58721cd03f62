"""Texts that were scanned before and found harmless. Files of a project are mostly the same as
yesterday, and to load the scanner takes as long as all else that a short run does."""

from __future__ import annotations

import os
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from hermes.config.home import Home, replace_file
from hermes.core.errors import ConfigError

MOST_KNOWN = 400
SCANNER = Path(__file__).parents[1] / "policy" / "scan"


class ScanCache:
    """Kept as digests in the cache of a home, the newest last. Another scanner looks again."""

    def __init__(self, home: Home, scanner: Path = SCANNER) -> None:
        self._home = home
        self._path = home.cache / "harmless.txt"
        self._scanner = scanner

    def is_known_safe(self, text: str) -> bool:
        return self._digest(text) in self._known()

    def add(self, text: str) -> None:
        known = [*self._known(), self._digest(text)]
        try:
            data = "\n".join(known[-MOST_KNOWN:]).encode()
            replace_file(self._home, self._path, data, durable=False)
        except ConfigError:
            # A home that cannot be written to is looked at each time.
            return

    def _known(self) -> list[str]:
        try:
            return self._path.read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            return []

    def _digest(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=20, key=self._scanner_key).hexdigest()

    @cached_property
    def _scanner_key(self) -> bytes:
        """Differs when any of its files does."""
        with os.scandir(self._scanner) as entries:
            files = sorted((each.name, each.stat()) for each in entries if each.is_file())
        facts = "".join(f"{name} {stat.st_size} {stat.st_mtime_ns};" for name, stat in files)
        return blake2b(facts.encode(), digest_size=32).digest()
