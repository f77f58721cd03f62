"""Long pastes, shown in the input as one word and sent in full."""

from __future__ import annotations

import re

# A few lines are better seen than named.
SHOWN_LINES = 5

_NAME = re.compile(r"\[Pasted text #(\d+): \d+ lines\]")


class Pastes:
    def __init__(self) -> None:
        self._texts: list[str] = []

    def shown(self, text: str) -> str:
        """What stands in the input for a pasted text."""
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = plain.rstrip("\n").count("\n") + 1
        if lines <= SHOWN_LINES:
            return plain
        self._texts.append(plain)
        return f"[Pasted text #{len(self._texts)}: {lines} lines]"

    def expanded(self, text: str) -> str:
        """The input with every paste in its place."""
        return _NAME.sub(self._text, text)

    def _text(self, name: re.Match[str]) -> str:
        number = int(name[1])
        return self._texts[number - 1] if 1 <= number <= len(self._texts) else name[0]
