"""Usage over the last days: sessions, tokens, cost, tools, skills, memory and hours."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hermes.codec.values import Value
from hermes.core.messages import Usage
from hermes.journal.usage_tally import (
    HOUR_SECONDS,
    SessionCounts,
    SessionTotals,
    session_totals,
    usage_counts,
)

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.journal.archive import SessionArchive
    from hermes.journal.journal import SqliteJournal
    from hermes.journal.listing import Spending
    from hermes.memory.service import MemoryService
    from hermes.skills.library import SkillLibrary

DAY_SECONDS = 86_400
TOP = 5
# Causes that count as chat; all other calls are listed by task.
CHAT = frozenset(("chat", "retry", "fallback", "continuation", "cron", "sub-session"))


class ModelUse(Value, omit_defaults=False):
    """The use of one model. A cost of None means that no price is known."""

    model: str
    provider: str
    # The side task; empty for chat replies.
    task: str
    sessions: int
    calls: int
    usage: Usage
    # Calls that are not part of the cost.
    unpriced: int = 0


class ToolUse(Value, omit_defaults=False):
    name: str
    calls: int
    failures: int


class SkillUse(Value, omit_defaults=False):
    name: str
    loads: int
    changes: int = 0
    well: int = 0
    badly: int = 0
    last_at: str = ""


class SessionUse(Value, omit_defaults=False):
    id: str
    title: str
    seconds: float
    messages: int
    tool_calls: int
    tokens: int


class Insights(Value, omit_defaults=False):
    """Statistics about the sessions of a period."""

    days_back: int
    source: str
    sessions: int = 0
    messages: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    unpriced: int = 0
    active_days: int = 0
    # Consecutive active days up to today.
    streak: int = 0
    models: tuple[ModelUse, ...] = ()
    platforms: dict[str, int] = {}
    tools: tuple[ToolUse, ...] = ()
    skills: tuple[SkillUse, ...] = ()
    memory: dict[str, str] = {}
    memory_changes: int = 0
    # User messages by local hour.
    hours: tuple[int, ...] = (0,) * 24
    # User messages by weekday, from Monday.
    weekdays: tuple[int, ...] = (0,) * 7
    # User messages by day, from the first day to today.
    days: tuple[int, ...] = ()
    longest: tuple[SessionUse, ...] = ()
    busiest: tuple[SessionUse, ...] = ()


async def insights(
    run: RunContext,
    journal: SqliteJournal,
    archive: SessionArchive,
    skills: SkillLibrary,
    memory: MemoryService,
    *,
    days: int = 30,
    source: str = "",
) -> Insights:
    """Compute the insights for today and the days before it, in local time. Makes no model
    requests."""
    if not run.home.journal.exists():
        return Insights(days_back=days, source=source)
    now = run.world.clock.now()
    since = _midnight(now) - (days - 1) * DAY_SECONDS

    sessions, counted = await journal.reading(
        lambda db: (session_totals(db, since, source), usage_counts(db, since))
    )
    known = {each.session for each in sessions}
    counted = [each for each in counted if each.session in known]
    names = {each.id for each in sessions}
    lines = [
        line
        for line in await archive.spending(since=since)
        if not source or line.session_id in names
    ]
    times: dict[str, Counter[str]] = defaultdict(Counter)
    for each in counted:
        times[each.kind][each.name] += each.times
    return Insights(
        days_back=days,
        source=source,
        sessions=len(sessions),
        messages=sum(each.messages for each in sessions),
        tool_calls=times["tool"].total(),
        usage=_sum(line.usage for line in lines),
        unpriced=sum(line.unpriced for line in lines),
        models=_models(lines),
        platforms=dict(Counter(each.source for each in sessions).most_common()),
        tools=tuple(
            ToolUse(name=name, calls=count, failures=times["failed"][name])
            for name, count in times["tool"].most_common()
        ),
        skills=await _skills(journal, skills, times["skill"]),
        memory={
            name: part.usage for name, part in (await memory.status()).parts.items() if part.is_on
        },
        memory_changes=times["tool"]["memory"],
        longest=_top(sessions, lambda each: each.last_at - each.started_at),
        busiest=_top(sessions, lambda each: each.tokens),
        **_activity(counted, now, days),
    )


def _activity(counted: list[SessionCounts], now: float, days: int) -> dict[str, Any]:
    """Count user messages over time."""
    hours, weekdays, by_day = [0] * 24, [0] * 7, [0] * days
    today = _midnight(now)
    for each in counted:
        if each.kind != "said" or each.name != "user":
            continue
        moment = time.localtime(each.hour * HOUR_SECONDS)
        hours[moment.tm_hour] += each.times
        weekdays[moment.tm_wday] += each.times
        # Rounding handles days with a daylight saving change.
        back = round((today - _midnight(each.hour * HOUR_SECONDS)) / DAY_SECONDS)
        if 0 <= back < days:
            by_day[days - 1 - back] += each.times
    streak = next((n for n, count in enumerate(reversed(by_day)) if not count), days)
    return {
        "hours": tuple(hours),
        "weekdays": tuple(weekdays),
        "days": tuple(by_day),
        "active_days": sum(map(bool, by_day)),
        "streak": streak,
    }


def _models(lines: Iterable[Spending]) -> tuple[ModelUse, ...]:
    groups: dict[tuple[str, str, str], list[Spending]] = defaultdict(list)
    for line in lines:
        task = "" if line.cause in CHAT else line.cause
        groups[line.model, line.provider, task].append(line)
    models = [
        ModelUse(
            model=model,
            provider=provider,
            task=task,
            sessions=len({line.session_id for line in group}),
            calls=sum(line.calls for line in group),
            usage=_sum(line.usage for line in group),
            unpriced=sum(line.unpriced for line in group),
        )
        for (model, provider, task), group in groups.items()
    ]
    models.sort(key=lambda each: (bool(each.task), -each.usage.prompt - each.usage.output))
    return tuple(models)


async def _skills(
    journal: SqliteJournal, skills: SkillLibrary, loads: Counter[str]
) -> tuple[SkillUse, ...]:
    """Return the skills loaded in this period; successes and failures count over all time."""
    if not loads:
        return ()
    from hermes.skills.usage import skill_stats

    uses = {name: SkillUse(name=name, loads=count) for name, count in loads.most_common()}
    for each in await skill_stats(journal, skills):
        if each.name in uses:
            uses[each.name] = SkillUse(
                name=each.name,
                loads=loads[each.name],
                changes=each.changes,
                well=each.successes,
                badly=each.failures,
                last_at=each.last_at,
            )
    return tuple(uses.values())


def _top(sessions: list[SessionTotals], weight: Any) -> tuple[SessionUse, ...]:
    best = sorted(sessions, key=weight, reverse=True)[:TOP]
    return tuple(
        SessionUse(
            id=each.id,
            title=each.title or each.preview,
            seconds=each.last_at - each.started_at,
            messages=each.messages,
            tool_calls=each.tool_calls,
            tokens=each.tokens,
        )
        for each in best
    )


def _sum(usages: Iterable[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total += usage
    return total


def _midnight(at: float) -> float:
    moment = time.localtime(at)
    return time.mktime((moment.tm_year, moment.tm_mon, moment.tm_mday, 0, 0, 0, 0, 0, -1))
