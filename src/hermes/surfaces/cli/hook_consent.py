"""Asks once, at a terminal, whether configured hooks may run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from hermes.config.environment import process_environment
from hermes.config.home import resolve_home

# Every config file with hooks contains this word.
WORD = b"hooks"


def ask_before_session(options: Mapping[str, Any]) -> None:
    """Does nothing, and loads nothing, without hooks in the settings or without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or options.get("ignore_config"):
        return
    home = resolve_home(process_environment(), profile=options.get("profile"))
    try:
        if WORD not in home.config.read_bytes():
            return
    except OSError:
        return
    _ask(options)


def _ask(options: Mapping[str, Any]) -> None:
    from hermes.app.start import start
    from hermes.hooks.admin import hooks_without_consent, record_consent

    app = start(options)
    asyncio.run(app.close())
    if app.context.settings.hooks_auto_accept:
        return
    for hook in hooks_without_consent(app.context):
        if may_run(hook.event, hook.command):
            record_consent(app.context, hook)


def may_run(event: str, command: str) -> bool:
    """The user's answer; no answer means no."""
    from hermes.commands.formatting import one_line

    print(f"The settings run this program on the hook {event}:", file=sys.stderr)
    print(f"  {one_line(command)}", file=sys.stderr)
    print(
        "It runs with your permissions, without a sandbox. Allow it? [y/N] ",
        end="",
        file=sys.stderr,
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
