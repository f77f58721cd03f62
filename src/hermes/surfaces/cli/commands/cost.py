"""`hermes cost`: what model calls have used and cost, by model, day, cause or session."""

from __future__ import annotations

from typing import Literal

import click

from hermes.app.build import App
from hermes.app.library import Spending
from hermes.codec.json import plain
from hermes.core.messages import Usage
from hermes.surfaces.cli.output import as_json_option, print_json, print_table, with_app

By = Literal["model", "day", "cause", "session", "provider"]


@click.command(help="Tokens and cost of all model calls. Unknown prices are shown as unknown.")
@click.option(
    "--by",
    type=click.Choice(["model", "day", "cause", "session", "provider"]),
    default="model",
    show_default=True,
)
@click.option("--session", help="Only this session.")
@as_json_option
@click.pass_context
def command(ctx: click.Context, by: By, session: str | None, as_json: bool) -> None:
    async def work(app: App) -> tuple[Spending, ...]:
        session_id = await app.library.find(session) if session else None
        return await app.library.spending(session_id=session_id)

    groups = grouped(with_app(ctx, work), by)
    if as_json:
        print_json([{by: name, **plain(usage), "calls": calls} for name, calls, usage in groups])
        return
    if not groups:
        print("No model call yet.")
        return
    rows = [
        (name, str(calls), str(usage.prompt), str(usage.output), _price(usage))
        for name, calls, usage in groups
    ]
    print_table([(by.capitalize(), "Calls", "In", "Out", "Cost"), *rows], (36, 7, 10, 10))


def grouped(lines: tuple[Spending, ...], by: By) -> list[tuple[str, int, Usage]]:
    found: dict[str, tuple[int, Usage]] = {}
    for line in lines:
        name = line.session_id if by == "session" else str(getattr(line, by))
        calls, usage = found.get(name, (0, Usage()))
        found[name] = (calls + line.calls, usage + line.usage)
    return [(name, calls, usage) for name, (calls, usage) in sorted(found.items())]


def _price(usage: Usage) -> str:
    return "unknown" if usage.cost is None else f"${usage.cost:.4f}"
