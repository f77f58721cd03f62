"""Colours for plain command output, where a person looks at it and wants them."""

from __future__ import annotations

import sys
from typing import Literal, TextIO

from hermes.config.findings import Level
from hermes.config.secrets import process_environment

Role = Literal["ok", "warn", "error", "dim", "bold"]

_CODES: dict[Role, str] = {"ok": "32", "warn": "33", "error": "31", "dim": "2", "bold": "1"}


def apply_style(text: str, role: Role, to: TextIO | None = None) -> str:
    """The text in the colour of its role if the stream (stdout) is a terminal that shows colours;
    NO_COLOR and TERM=dumb are respected."""
    return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if has_colours(to or sys.stdout) else text


def mark(level: Level) -> str:
    """The sign in front of a finding."""
    return apply_style({"ok": "✓", "warn": "⚠", "error": "✗"}[level], level)


def has_colours(stream: TextIO) -> bool:
    if not stream.isatty():
        return False
    env = process_environment()
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"
