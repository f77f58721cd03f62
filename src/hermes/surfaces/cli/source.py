"""Turns the options of a run into the description of its session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.config.secrets import process_environment
from hermes.core.session_request import SessionRequest

VARIABLE = "HERMES_SESSION_SOURCE"


def opening_of(options: Mapping[str, Any], *, attended: bool) -> SessionRequest:
    """The source is given by an option, else by the program that started this one."""
    source = options.get("source") or process_environment().get(VARIABLE, "").strip() or "cli"
    return SessionRequest(
        source=source,
        attended=attended,
        platform="cli",
        resume=options.get("resume") or "",
        newest=options.get("newest"),
        rules=not options.get("ignore_rules"),
        worktree=bool(options.get("worktree")),
        tell_id=bool(options.get("tell_id")),
        stay=bool(options.get("stay")),
    )
