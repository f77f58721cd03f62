"""Colours of the chat, by role; none where they are not wanted."""

from __future__ import annotations

from typing import Literal

Role = Literal[
    "plain", "dim", "bold", "accent", "ok", "warn", "error", "added", "removed", "chosen"
]

_CODES: dict[Role, str] = {
    "dim": "2",
    "bold": "1",
    "accent": "36",
    "ok": "32",
    "warn": "33",
    "error": "31",
    "added": "32",
    "removed": "31",
    "chosen": "7",
}


class Paint:
    """`paint(text, role)` is the text in the colours of the role, line by line."""

    def __init__(self, *, colours: bool) -> None:
        self.colours = colours

    def __call__(self, text: str, role: Role) -> str:
        code = _CODES.get(role)
        if not self.colours or code is None or not text:
            return text
        # A colour that runs over a line break would also paint the margin of the next line.
        lines = text.split("\n")
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in lines)
