"""The way into a chat, once it is sure that there is a terminal to draw on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

NEEDS_TERMINAL = (
    'A chat needs a terminal. For one answer: hermes -z "…", or hermes chat -q "…" < file'
)


def run_chat(options: Mapping[str, Any]) -> int:
    """A conversation with the options that stand before any command; the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(NEEDS_TERMINAL, file=sys.stderr)
        return 2
    from hermes.surfaces.cli.chat.start import talk

    return talk(options)
