"""Describes how much of a spending cap is used."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.app.app import App
from hermes.codec.values import Value
from hermes.commands.formatting import format_count, format_money
from hermes.core.caps import DAY_SECONDS, Cap, first_day_of_month
from hermes.journal.archive import Spending


class CapState(Value):
    """`spent` and `cap` are amounts with their unit."""

    name: str
    spent: str
    cap: str
    setting: str

    def __str__(self) -> str:
        return f"{self.name} {self.spent} of {self.cap} ({self.setting})"


async def cap_states(app: App) -> tuple[CapState, ...]:
    """The daily and monthly caps that are set."""
    caps, now = app.caps, app.run.world.clock.now()
    if not (caps.day.is_set or caps.month.is_set):
        return ()
    month = await app.archive.spending(since=first_day_of_month(now) * DAY_SECONDS)
    day = await app.archive.spending(since=now)
    return (
        *_states("today", "day", caps.day, day),
        *_states("month", "month", caps.month, month),
    )


def _states(name: str, scope: str, cap: Cap, lines: Sequence[Spending]) -> list[CapState]:
    found = []
    if cap.usd is not None:
        dollars = sum((line.usage.cost or 0) + (line.assumed.cost or 0) for line in lines)
        words = (format_money(dollars), format_money(cap.usd))
        found.append(CapState(name=name, spent=words[0], cap=words[1], setting=f"budget.{scope}"))
    if cap.tokens is not None:
        tokens = sum(
            each.prompt + each.output for line in lines for each in (line.usage, line.assumed)
        )
        words = (format_count(tokens), f"{format_count(cap.tokens)} tokens")
        setting = f"budget.{scope}.tokens"
        found.append(CapState(name=name, spent=words[0], cap=words[1], setting=setting))
    return found
