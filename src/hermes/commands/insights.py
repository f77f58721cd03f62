"""`/insights`, and the usage report for every surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from hermes.commands.formatting import one_line, sanitize
from hermes.commands.registry import CommandContext, Outcome, ShowText, SlashCommand
from hermes.core.errors import UsageError

if TYPE_CHECKING:
    from hermes.core.messages import Usage
    from hermes.homes.insights import Insights, ModelUse, SessionUse

DAYS = 30
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


def insight_lines(found: Insights, paint: Paint = plain) -> list[str]:
    """Lines for a terminal; `paint` adds colours."""
    if not found.sessions:
        return [NO_ACTIVITY]
    parts = (
        _overview(found, paint),
        _section("Models", [_model(each) for each in found.models], paint),
        _section("Platforms", _bars(list(found.platforms.items()), paint), paint),
        _section("Tools", _tools(found, paint), paint),
        _section("Skills", _skills(found), paint),
        _section("Memory", _memory(found), paint),
        _section("Hours of the day", _hours(found.hours, paint), paint),
        _section("Weekdays", _bars(list(zip(WEEKDAYS, found.weekdays, strict=True)), paint), paint),
        _section("Longest sessions", [_session(each) for each in found.longest], paint),
        _section("Most tokens", [_session(each) for each in found.busiest], paint),
    )
    return [line for part in parts for line in part]


def _overview(found: Insights, paint: Paint) -> list[str]:
    usage = found.usage
    where = f" on {found.source}" if found.source else ""
    head = f"Last {found.days_back} days{where}" if found.days_back > 1 else f"Today{where}"
    mean = usage.prompt + usage.output
    return [
        paint(head, "bold"),
        f"  {_many(found.sessions, 'session')}, {_many(found.messages, 'message')}, "
        f"{_many(found.tool_calls, 'tool call')}",
        f"  {_count(usage.prompt)} tokens in ({_count(usage.cache_read)} from a cache), "
        f"{_count(usage.output)} out, cost {_price(usage, found.unpriced)}",
        f"  {_many(found.active_days, 'active day')}, {found.streak} in a row; on average "
        f"{_count(mean // found.sessions)} tokens a session",
        f"  {_spark(found.days)}",
    ]


def _section(title: str, lines: Sequence[str], paint: Paint) -> list[str]:
    return ["", paint(title, "bold"), *(f"  {line}" for line in lines)] if lines else []


def _model(each: ModelUse) -> str:
    name = f"{each.model} ({each.task})" if each.task else each.model
    tokens = _count(each.usage.prompt + each.usage.output)
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


def _skills(found: Insights) -> list[str]:
    return [
        f"{one_line(each.name, NAME):<{NAME}} {each.loads:>4} loaded  {each.changes:>3} changes  "
        f"{each.well} well, {each.badly} badly  {each.last_at[:10]}"
        for each in found.skills[:SHOWN_ROWS]
    ]


def _memory(found: Insights) -> list[str]:
    lines = [f"{name:<8} {usage}" for name, usage in found.memory.items()]
    return [*lines, f"{found.memory_changes} changes in these days"] if lines else []


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
    return [paint(_spark(hours), "ok"), paint(scale, "dim"), f"most at {best:02}:00"]


def _spark(counts: Sequence[int]) -> str:
    """A sparkline with one character per value; zero is a dot."""
    most = max(counts, default=0) or 1
    return "".join(
        _EIGHTHS[(count * (len(_EIGHTHS) - 1)) // most] if count else "·" for count in counts
    )


def _session(each: SessionUse) -> str:
    title = one_line(each.title, NAME) or "-"
    return (
        f"{each.id}  {title:<{NAME}} {_time(each.seconds):>7}  {each.messages:>4} messages  "
        f"{each.tool_calls:>4} calls  {_count(each.tokens):>7} tokens"
    )


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _many(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number != 1 else ''}"


def _count(number: int) -> str:
    if number < 10_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _price(usage: Usage, unpriced: int) -> str:
    if usage.cost is None:
        return "n/a"
    return f"${usage.cost:.4f}" + (f" and {unpriced} of unknown price" if unpriced else "")


async def insights(here: CommandContext, argument: str) -> Outcome:
    # Loaded on demand.
    from hermes.homes.insights import insights as found_in

    text = argument.strip()
    if text and not (text.isdecimal() and 0 < int(text) <= 3650):
        raise UsageError("Use /insights [DAYS], for example /insights 7.")
    app = here.app
    found = await found_in(
        app.run, app.journal, app.archive, app.skills(), app.memory, days=int(text or DAYS)
    )
    return ShowText(text=sanitize("\n".join(insight_lines(found))))


INSIGHTS_COMMANDS = (
    SlashCommand(
        "insights",
        "Show recent usage: tokens, cost, tools, skills, hours.",
        insights,
        arguments="[days]",
        category="info",
    ),
)
