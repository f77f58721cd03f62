"""Where a session says that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.config.secrets import environment

VARIABLE = "HERMES_SESSION_SOURCE"


def source_of(options: Mapping[str, Any]) -> str:
    """What was asked for here, else by a program that starts this one."""
    return options.get("source") or environment().get(VARIABLE, "").strip() or "cli"
