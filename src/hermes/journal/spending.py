"""Reads the usage ledger: what model calls used and cost, including deleted sessions."""

from __future__ import annotations

from typing import Any

from hermes.codec.values import Value
from hermes.core.caps import day_of
from hermes.core.messages import Usage
from hermes.journal.journal import SqliteJournal
from hermes.journal.summaries import PICO


class Spending(Value):
    """A row of the ledger. `day` is an ISO date in UTC; `unpriced` replies have no known cost.
    `assumed` is the most that `assumed_calls` of the calls may have cost in addition: those in
    progress, and those that never ended."""

    session_id: str
    day: str
    model: str
    provider: str
    cause: str
    principal: str
    job: str
    calls: int
    replies: int
    usage: Usage
    unpriced: int = 0
    assumed: Usage = Usage()
    assumed_calls: int = 0


_SETTLED = (
    "SELECT s.id, u.day, u.model, u.provider, u.cause, m.principal, m.job, u.calls, u.replies,"
    " u.unpriced, u.input, u.output, u.cache_read, u.cache_write, u.reasoning, u.cost,"
    " 0 AS assumed_calls, 0 AS assumed_input, 0 AS assumed_output, 0 AS assumed_cost,"
    " 0 AS assumed_unpriced"
    " FROM usage AS u JOIN sessions AS s USING (session) JOIN summaries AS m USING (session)"
)
_ASSUMED = (
    "SELECT s.id, a.day, a.model, a.provider, a.cause, m.principal, m.job, 0, 0, 0, 0, 0, 0, 0, 0,"
    " 0, 1, a.input, a.output, a.cost, 1 - a.priced"
    " FROM assumed AS a JOIN sessions AS s USING (session) JOIN summaries AS m USING (session)"
)
_CARRIED = (
    "SELECT id, day, model, provider, cause, principal, job, calls, replies, unpriced, input,"
    " output, cache_read, cache_write, reasoning, cost, assumed_calls, assumed_input,"
    " assumed_output, assumed_cost, assumed_unpriced FROM carried"
)
_SUMMED = (
    "calls replies unpriced input output cache_read cache_write reasoning cost assumed_calls"
    " assumed_input assumed_output assumed_cost assumed_unpriced"
).split()


async def read_spending(
    journal: SqliteJournal, *, session_id: str | None = None, since: float = 0.0
) -> tuple[Spending, ...]:
    """Oldest day first."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in _SUMMED)
    query = (
        "SELECT id, date(day * 86400, 'unixepoch'), model, provider, cause, max(principal),"
        f" max(job), {sums} FROM ({_SETTLED} UNION ALL {_ASSUMED} UNION ALL {_CARRIED})"
        " WHERE day >= ?1 AND (?2 IS NULL OR id = ?2) GROUP BY day, id, model, provider, cause"
        " ORDER BY day, id, model, provider, cause"
    )
    values = (day_of(since), session_id)
    rows = await journal.reading(lambda db: db.execute(query, values).fetchall())
    return tuple(_spending_of(row) for row in rows)


async def job_of(journal: SqliteJournal, session_id: str) -> str:
    query = "SELECT job FROM summaries JOIN sessions USING (session) WHERE id = ?"
    row = await journal.reading(lambda db: db.execute(query, (session_id,)).fetchone())
    return str(row[0]) if row else session_id


def _spending_of(row: tuple[Any, ...]) -> Spending:
    session_id, day, model, provider, cause, principal, job, *numbers = row
    of = dict(zip(_SUMMED, numbers, strict=True))
    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    is_priced = of["replies"] > of["unpriced"]
    return Spending(
        session_id=session_id,
        day=day,
        model=model,
        provider=provider,
        cause=cause,
        principal=principal,
        job=job,
        calls=of["calls"] + of["assumed_calls"],
        replies=of["replies"],
        usage=Usage(
            **{name: of[name] for name in names}, cost=of["cost"] / PICO if is_priced else None
        ),
        unpriced=of["unpriced"],
        assumed=_assumed_usage(of),
        assumed_calls=of["assumed_calls"],
    )


def _assumed_usage(of: dict[str, int]) -> Usage:
    is_priced = of["assumed_calls"] > of["assumed_unpriced"]
    return Usage(
        input=of["assumed_input"],
        output=of["assumed_output"],
        cost=of["assumed_cost"] / PICO if is_priced else None,
    )
