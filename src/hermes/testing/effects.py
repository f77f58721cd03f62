"""Counts real side effects, outside the process under test."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path


class EffectLog:
    """A file to which every real effect appends one line. It survives a crash of the process, and a
    line is written completely or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, name: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")

    def shell(self, name: str) -> str:
        """A shell command with this effect, for a scripted terminal call."""
        return f"echo {shlex.quote(name)} >> {shlex.quote(str(self.path))}"

    def counts(self) -> Counter[str]:
        if not self.path.exists():
            return Counter()
        return Counter(self.path.read_text(encoding="utf-8").splitlines())

    def count(self, name: str) -> int:
        return self.counts()[name]
