"""`hermes cost`, `insights` and `prompt-size`: usage reports."""

from __future__ import annotations

import time
from typing import Literal

import click

from hermes.app.app import App
from hermes.app.session_prompt import prompt_sizes
from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.commands.insights import DAYS, MOST_DAYS, insight_lines
from hermes.commands.session import cap_states
from hermes.core.messages import Usage
from hermes.core.session_request import SessionRequest
from hermes.journal.listing import Spending, parse_since
from hermes.surfaces.cli.command_context import apply_style, options_of, with_app
from hermes.surfaces.cli.output import Output, json_command, table

By = Literal["model", "day", "cause", "person", "job", "session", "provider"]
_FIELDS = {"person": "principal", "session": "session_id"}


class Sum:
    """Totals of a group of model calls. `unpriced` counts replies without a known price; `assumed`
    is an upper bound for calls whose cost is unknown, because they have not ended or because their
    report was `corrected`."""

    def __init__(self) -> None:
        self.calls = 0
        self.usage = Usage()
        self.unpriced = 0
        self.assumed = Usage()
        self.assumed_calls = 0
        self.corrected_calls = 0
        self.corrected_cost = 0.0

    def add(self, line: Spending) -> None:
        self.calls += line.calls
        self.usage += line.usage
        self.unpriced += line.unpriced
        self.assumed += line.assumed
        self.assumed_calls += line.assumed_calls
        self.corrected_calls += line.corrected_calls
        self.corrected_cost += line.corrected_cost

    def price(self) -> str:
        if self.calls == self.assumed_calls:
            return "-"
        if self.usage.cost is None:
            return "unknown"
        more = f" and {self.unpriced} of unknown price" if self.unpriced else ""
        return f"${self.usage.cost:.4f}{more}"

    def assumption(self) -> str:
        """Return the assumed cost in dollars, or in tokens where there is no price."""
        if not self.assumed_calls:
            return ""
        if self.assumed.cost is None:
            return f"up to {self.assumed.prompt + self.assumed.output} tokens"
        return f"up to ${self.assumed.cost:.4f}"


@json_command(
    "Show the tokens and the cost of model calls. Calls with an unknown outcome are listed "
    "separately with their maximum cost.",
    with_app,
)
@click.option(
    "--by",
    type=click.Choice(["model", "day", "cause", "person", "job", "session", "provider"]),
    default="model",
    show_default=True,
    help="Group the calls by this field.",
)
@click.option("--session", metavar="ID", help="Count only this session.")
@click.option("--since", metavar="AGE|DATE", help="Count calls since then (7d, 12h, 2026-05-01).")
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(min=1),
    help="Count only the last N days (UTC), including today.",
)
async def cost_command(
    app: App, by: By, session: str | None, since: str | None, days: int | None
) -> Output:
    session_id = await app.archive.find(session) if session else None
    now = time.time()
    first = parse_since(since, now) if since else 0.0
    first = max(first, now - (days - 1) * 86_400) if days else first
    sums, total = dict[str, Sum](), Sum()
    for line in await app.archive.spending(session_id=session_id, since=first):
        # Imported replies cost nothing here.
        if line.calls or line.usage != Usage():
            sums.setdefault(str(getattr(line, _FIELDS.get(by, by))), Sum()).add(line)
            total.add(line)
    caps = () if session else await cap_states(app.archive, app.caps, now)
    data = [_columns(by, name, each) for name, each in sorted(sums.items())]
    if not sums:
        return Output(data, ("There are no model calls yet.", *caps))
    # A column for assumed cost only if there is any.
    widths = (36, 7, 10, 10, 12) if total.assumed_calls else (36, 7, 10, 10)
    rows = [(by.capitalize(), "Calls", "In", "Out", "Cost", "Assumed")]
    for name, each in (*sorted(sums.items()), *([("total", total)] if len(sums) > 1 else ())):
        amounts = (str(each.calls), str(each.usage.prompt), str(each.usage.output))
        rows.append((name, *amounts, each.price(), each.assumption()))
    lines = table([row[: len(widths) + 1] for row in rows], widths)
    return Output(data, (*lines, *_corrections(total), *caps))


def _corrections(total: Sum) -> tuple[str, ...]:
    if not total.corrected_calls:
        return ()
    count = "1 call" if total.corrected_calls == 1 else f"{total.corrected_calls} calls"
    amount = f"${total.corrected_cost:.4f}" if total.corrected_cost else "an unknown cost"
    return (f"corrected: {count} with an implausible report, counted as up to {amount}",)


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
        "assumed_calls": each.assumed_calls,
        "assumed_tokens": each.assumed.prompt + each.assumed.output,
        "assumed_cost": each.assumed.cost if each.assumed_calls else 0.0,
        "corrected_calls": each.corrected_calls,
        "corrected_cost": each.corrected_cost,
    }


@json_command(
    "Show recent use: sessions, tokens, cost, tools, skills, memory and hours. No model is called.",
    with_app,
)
@click.option(
    "--days",
    metavar="N",
    type=click.IntRange(1, MOST_DAYS),
    default=DAYS,
    show_default=True,
    help="Count the last N days.",
)
@click.option("--source", default="", help="Count only sessions from this source: cli, api, acp …")
async def insights_command(app: App, days: int, source: str) -> Output:
    from hermes.homes.insights import insights

    found = await insights(
        app.context, app.journal, app.archive, app.skills(), app.memory, days=days, source=source
    )
    return Output(plain(found), insight_lines(found, paint=apply_style))


@json_command("Estimate the tokens of the system prompt, by layer, and of each tool.")
@click.option("--platform", default="cli", show_default=True, help="Use this surface's prompt.")
def prompt_size_command(ctx: click.Context, platform: str) -> Output:
    context_files = not options_of(ctx).get("ignore_rules")
    request = SessionRequest(
        source="cli", attended=True, platform=platform, context_files=context_files
    )
    sizes = with_app(ctx, lambda app: prompt_sizes(app, request))
    tokens, size = sum(each.tokens for each in sizes), sum(each.bytes for each in sizes)
    rows = [(each.part, each.name, str(each.bytes), str(each.tokens)) for each in sizes]
    total = ("", "total", str(size), str(tokens))
    return Output(
        {"parts": sizes, "tokens": tokens, "bytes": size, "estimated": True},
        table([("Part", "Name", "Bytes", "Tokens (about)"), *rows, total], (8, 20, 8)),
    )
