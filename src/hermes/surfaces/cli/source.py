"""Turns the options of a run into the description of its session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.config.secrets import environment
from hermes.core.session_request import Opening

VARIABLE = "HERMES_SESSION_SOURCE"


def opening_of(options: Mapping[str, Any], *, attended: bool) -> Opening:
    """The source is given by an option, else by the program that started this one."""
    source = options.get("source") or environment().get(VARIABLE, "").strip() or "cli"
    return Opening(
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
