"""`/insights`, and the usage report for every surface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from hermes.commands.formatting import format_count, format_elapsed, one_line, plural, sanitize
from hermes.commands.registry import CommandContext, SlashCommand

if TYPE_CHECKING:
    from hermes.core.messages import Usage
    from hermes.homes.insights import Insights, ModelUse, SessionUse, SkillUse

DAYS = 30
MOST_DAYS = 3650
BAR = 28
SHOWN_ROWS = 10
NAME = 26
NO_ACTIVITY = "There was no activity in this period."
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EIGHTHS = "▁▂▃▄▅▆▇█"

Role = Literal["bold", "dim", "ok", "error"]
Paint = Callable[[str, Role], str]


def plain(text: str, role: Role) -> str:
    return text


def insight_lines(insights: Insights, paint: Paint = plain) -> list[str]:
    """Lines for a terminal; `paint` adds colours."""
    if not insights.sessions:
        return [NO_ACTIVITY]
    parts = (
        _overview(insights, paint),
        _section("Models", map(_model, insights.models), paint),
        _section("Platforms", _bars(list(insights.platforms.items()), paint), paint),
        _section("Tools", _tools(insights, paint), paint),
        _section("Skills", map(_skill, insights.skills[:SHOWN_ROWS]), paint),
        _section("Memory", _memory(insights), paint),
        _section("Hours of the day", _hours(insights.hours, paint), paint),
        _section(
            "Weekdays", _bars(list(zip(WEEKDAYS, insights.weekdays, strict=True)), paint), paint
        ),
        _section("Longest sessions", map(_session, insights.longest), paint),
        _section("Most tokens", map(_session, insights.busiest), paint),
    )
    return [line for part in parts for line in part]


def _overview(insights: Insights, paint: Paint) -> list[str]:
    usage = insights.usage
    where = f" on {insights.source}" if insights.source else ""
    head = f"Last {insights.days_back} days{where}" if insights.days_back > 1 else f"Today{where}"
    mean = usage.prompt + usage.output
    return [
        paint(head, "bold"),
        f"  {plural(insights.sessions, 'session')}, {plural(insights.messages, 'message')}, "
        f"{plural(insights.tool_calls, 'tool call')}",
        f"  {format_count(usage.prompt)} tokens in ({format_count(usage.cache_read)} from a cache)"
        f", {format_count(usage.output)} out, cost {_price(usage, insights.unpriced)}",
        f"  {plural(insights.active_days, 'active day')}, {insights.streak} in a row; on average "
        f"{format_count(mean // insights.sessions)} tokens a session",
        f"  {_spark(insights.days)}",
    ]


def _section(title: str, lines: Iterable[str], paint: Paint) -> list[str]:
    rows = [f"  {line}" for line in lines]
    return ["", paint(title, "bold"), *rows] if rows else []


def _model(each: ModelUse) -> str:
    name = f"{each.model} ({each.task})" if each.task else each.model
    tokens = format_count(each.usage.prompt + each.usage.output)
    return (
        f"{one_line(name, NAME + 10):<{NAME + 10}} {tokens:>7} tokens  {each.calls:>5} calls  "
        f"{_price(each.usage, each.unpriced)}"
    )


def _tools(found: Insights, paint: Paint) -> list[str]:
    shown = found.tools[:SHOWN_ROWS]
    bars = _bars([(each.name, each.calls) for each in shown], paint)
    return [
        f"{bar}  {paint(f'{each.failures} failed', 'error')}" if each.failures else bar
        for bar, each in zip(bars, shown, strict=True)
    ]


def _skill(each: SkillUse) -> str:
    return (
        f"{one_line(each.name, NAME):<{NAME}} {each.loads:>4} loaded  {each.changes:>3} changes  "
        f"{each.well} good, {each.badly} bad  {each.last_at[:10]}"
    )


def _memory(found: Insights) -> list[str]:
    lines = [f"{name:<8} {usage}" for name, usage in found.memory.items()]
    return [*lines, f"{plural(found.memory_changes, 'change')} in this period"] if lines else []


def _bars(rows: Sequence[tuple[str, int]], paint: Paint) -> list[str]:
    """Bars scaled to the maximum; every non-zero value gets a bar."""
    most = max((count for _, count in rows), default=0)
    total = sum(count for _, count in rows)
    if not most:
        return []
    return [
        f"{one_line(name, NAME):<{NAME if max(map(len, (n for n, _ in rows))) > 3 else 3}} "
        f"{paint('█' * (max(1, count * BAR // most) if count else 0), 'ok')} "
        f"{count} ({count * 100 // total}%)"
        for name, count in rows
    ]


def _hours(hours: Sequence[int], paint: Paint) -> list[str]:
    if not any(hours):
        return []
    best = max(range(24), key=lambda hour: hours[hour])
    scale = "".join(f"{hour:<6}" for hour in range(0, 24, 6))
    return [paint(_spark(hours), "ok"), paint(scale, "dim"), f"busiest hour: {best:02}:00"]


def _spark(counts: Sequence[int]) -> str:
    """A sparkline with one character per value; zero is a dot."""
    most = max(counts, default=0) or 1
    return "".join(
        _EIGHTHS[(count * (len(_EIGHTHS) - 1)) // most] if count else "·" for count in counts
    )


def _session(each: SessionUse) -> str:
    title, elapsed = one_line(each.title, NAME) or "-", format_elapsed(each.seconds)
    return (
        f"{each.id}  {title:<{NAME}} {elapsed:>7}  {each.messages:>4} messages  "
        f"{each.tool_calls:>4} calls  {format_count(each.tokens):>7} tokens"
    )


def _price(usage: Usage, unpriced: int) -> str:
    if usage.cost is None:
        return "n/a"
    return f"${usage.cost:.4f}" + (f" and {unpriced} of unknown price" if unpriced else "")


async def insights(here: CommandContext, argument: str) -> str | None:
    # Loaded on demand.
    from hermes.homes.insights import insights as collect

    days = int(argument or DAYS) if argument.isdecimal() or not argument else 0
    if not 0 < days <= MOST_DAYS:
        return None
    app = here.app
    found = await collect(
        app.context, app.journal, app.archive, app.skills(), app.memory, days=days
    )
    return sanitize("\n".join(insight_lines(found)))


INSIGHTS_COMMANDS = (
    SlashCommand(
        "insights [DAYS]", "Show recent use: tokens, cost, tools, skills, hours.", insights
    ),
)
