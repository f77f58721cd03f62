"""Starts a chat if there is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from hermes.surfaces.cli.chat.start import run_terminal_chat

NEEDS_TERMINAL = (
    'A chat needs a terminal. For one answer: hermes -z "…", or hermes chat -q "…" < file'
)


def run_chat(options: Mapping[str, Any]) -> int:
    """The exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(NEEDS_TERMINAL, file=sys.stderr)
        return 2
    return run_terminal_chat(options)
