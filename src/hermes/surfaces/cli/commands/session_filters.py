"""Filter options for commands that work on many sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from hermes.journal.archive import SessionFilter, parse_age, parse_date

F = TypeVar("F", bound=Callable[..., Any])

COUNT = click.IntRange(min=0)

_OPTIONS = (
    click.option("--source", help="Only sessions from this surface."),
    click.option("--title", help="Only titles that contain this."),
    click.option("--cwd", help="Only folders that contain this."),
    click.option("--workspace", metavar="PATH", help="Only sessions in this folder or below."),
    click.option("--model", help="Only this model."),
    click.option("--provider", help="Only this provider."),
    click.option("--end-reason", help="Only sessions that ended for this reason."),
    click.option("--before", metavar="DATE", help="Last used before this date: 2026-05-01."),
    click.option("--after", metavar="DATE", help="Last used on this date or later."),
    click.option("--newer-than", metavar="AGE", help="Last used within: 90 (days), 12h, 2w."),
    click.option("--min-messages", metavar="N", type=COUNT, help="At least N messages."),
    click.option("--max-messages", metavar="N", type=COUNT, help="At most N messages."),
)


def filter_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def parse_filter(given: Mapping[str, Any], now: float) -> SessionFilter:
    """Includes archived sessions unless `archived` is given. Raises UsageError for an invalid date
    or age."""
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
