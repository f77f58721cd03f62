"""`hermes cost`: what model calls have used and cost, by model, day, cause or session."""

from __future__ import annotations

from typing import Literal

import click

from hermes.app.build import App
from hermes.app.library import Spending
from hermes.codec.values import JsonObject
from hermes.core.messages import Usage
from hermes.surfaces.cli.output import as_json_option, print_json, print_table, with_app

By = Literal["model", "day", "cause", "session", "provider"]


class Sum:
    """Model calls that belong together. `unpriced` replies have no known price."""

    def __init__(self) -> None:
        self.calls = 0
        self.usage = Usage()
        self.unpriced = 0

    def add(self, line: Spending) -> None:
        self.calls += line.calls
        self.usage += line.usage
        self.unpriced += line.unpriced

    def price(self) -> str:
        if self.usage.cost is None:
            return "unknown"
        more = f" and {self.unpriced} of unknown price" if self.unpriced else ""
        return f"${self.usage.cost:.4f}{more}"


@click.command(help="Tokens and cost of all model calls. Unknown prices are shown as unknown.")
@click.option(
    "--by",
    type=click.Choice(["model", "day", "cause", "session", "provider"]),
    default="model",
    show_default=True,
    help="What to add up.",
)
@click.option("--session", help="Only this session.")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(min=1),
    help="Only today and the days before, in UTC.",
)
@as_json_option
@click.pass_context
def command(
    ctx: click.Context, by: By, session: str | None, days: int | None, as_json: bool
) -> None:
    async def work(app: App) -> tuple[Spending, ...]:
        session_id = await app.library.find(session) if session else None
        since = app.world.clock.now() - (days - 1) * 86_400 if days else 0.0
        found = await app.library.spending(session_id=session_id, since=since)
        # Replies that were brought in from elsewhere cost nothing here.
        return tuple(line for line in found if line.calls or line.usage != Usage())

    lines = with_app(ctx, work)
    sums = grouped(lines, by)
    if as_json:
        print_json([_columns(by, name, each) for name, each in sums.items()])
        return
    if not sums:
        print("No model call yet.")
        return
    rows = [_row(name, each) for name, each in sums.items()]
    if len(rows) > 1:
        rows.append(_row("total", added(lines)))
    print_table([(by.capitalize(), "Calls", "In", "Out", "Cost"), *rows], (36, 7, 10, 10))


def grouped(lines: tuple[Spending, ...], by: By) -> dict[str, Sum]:
    """Sorted by name."""
    found: dict[str, Sum] = {}
    for line in lines:
        name = line.session_id if by == "session" else str(getattr(line, by))
        found.setdefault(name, Sum()).add(line)
    return dict(sorted(found.items()))


def added(lines: tuple[Spending, ...]) -> Sum:
    total = Sum()
    for line in lines:
        total.add(line)
    return total


def _row(name: str, each: Sum) -> tuple[str, ...]:
    usage = each.usage
    return (name, str(each.calls), str(usage.prompt), str(usage.output), each.price())


def _columns(by: By, name: str, each: Sum) -> JsonObject:
    usage = each.usage
    return {
        by: name,
        "calls": each.calls,
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "cost": usage.cost,
        "unpriced": each.unpriced,
    }
