"""The options that narrow a choice of sessions, for all commands that take many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from hermes.journal.archive import SessionFilter, parse_age, parse_date

F = TypeVar("F", bound=Callable[..., Any])

COUNT = click.IntRange(min=0)

_OPTIONS = (
    click.option("--source", help="Only sessions of this surface."),
    click.option("--title", help="Only titles with this in them."),
    click.option("--cwd", help="Only folders with this in them."),
    click.option("--workspace", metavar="PATH", help="Only sessions of this folder, or below it."),
    click.option("--model", help="Only this model."),
    click.option("--provider", help="Only this provider."),
    click.option("--end-reason", help="Only sessions that ended for this reason."),
    click.option("--before", metavar="DATE", help="Last used before then: 2026-05-01."),
    click.option("--after", metavar="DATE", help="Last used then or later."),
    click.option("--newer-than", metavar="AGE", help="Last used within: 90 (days), 12h, 2w."),
    click.option("--min-messages", metavar="N", type=COUNT, help="At least so many messages."),
    click.option("--max-messages", metavar="N", type=COUNT, help="At most so many messages."),
)


def filter_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen(given: Mapping[str, Any], now: float) -> SessionFilter:
    """What these options choose, also of what was put away unless they say something about that;
    UsageError for a date or an age that is none."""
    values = {"archived": None, **given}
    newer_than, workspace = values.pop("newer_than"), values.pop("workspace")
    if workspace is not None:
        values["within"] = str(Path(workspace).expanduser().resolve())
    for name in ("before", "after"):
        if values[name] is not None:
            values[name] = parse_date(values[name])
    if newer_than is not None:
        values["after"] = max(values["after"] or 0.0, now - parse_age(newer_than))
    return SessionFilter(**values)


def is_narrowed(given: Mapping[str, Any]) -> bool:
    return any(value is not None for value in given.values())
