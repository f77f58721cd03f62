"""Grants each call as much as the caps leave. All processes count, and the grant is part of the
transaction that books the call."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hermes.codec.values import replace
from hermes.core.caps import Caps, cap_key, day_of, first_day_of_month
from hermes.core.errors import BudgetReached
from hermes.core.events import CapScope, ModelCalled
from hermes.core.messages import Usage
from hermes.journal.body_templates import StoredEvent
from hermes.journal.summaries import PICO, Summary, to_picodollars
from hermes.journal.transaction import Transaction

# A call reserves at most this part of what is left, so that others can run beside it, but never
# less than a reply of ordinary length needs.
SHARE = 8
ORDINARY_OUTPUT = 4_096

Unit = Literal["usd", "tokens"]


class Amount(NamedTuple):
    """Money in picodollars, and tokens."""

    cost: int
    tokens: int

    def of(self, unit: Unit) -> int:
        return self.cost if unit == "usd" else self.tokens


class Limit(NamedTuple):
    """One cap with its current state."""

    scope: CapScope
    key: str
    unit: Unit
    cap: int
    spent: int


def reserve_call(
    tx: Transaction,
    session: int,
    events: Sequence[StoredEvent],
    call: ModelCalled,
    least: Usage,
    caps: Caps,
    *,
    turn_id: str,
    at: float,
) -> ModelCalled:
    """Reserve as much for the call as the caps leave, and return the call. Raises BudgetReached
    when less than `least` is left. `events` are written before the call and may settle other
    calls."""
    most = call.reserved
    assert most is not None
    # Writes in the same transaction count already.
    tx.settle()
    accounts = _Accounts(tx.db, tx.head(session).summary, events, turn_id, at)
    low, high = _amount(least), _amount(most)
    output = most.output
    for limit in accounts.limits(caps):
        unit, left = limit.unit, limit.cap - limit.spent
        if unit == "usd" and most.cost is None:
            continue
        if low.of(unit) > left:
            raise _budget_error(limit, low.of(unit), accounts.pending(limit.scope).of(unit))
        line = _CostLine(low.of(unit), high.of(unit), least.output, most.output)
        output = min(output, line.output_for(left))
    if output < most.output:
        cost = _CostLine(low.cost, high.cost, least.output, most.output).at(output) / PICO
        cost_or_none = None if most.cost is None else cost
        most = Usage(input=most.prompt, output=output, cost=cost_or_none)
    return replace(call, reserved=replace(most, requests=1))


class _CostLine(NamedTuple):
    """The cost of a call as a linear function of its output."""

    low: int  # the cost of the shortest useful reply
    high: int  # the cost of the longest reply
    first: int  # the length of the shortest useful reply
    last: int  # the length of the longest reply

    def at(self, output: int) -> int:
        if self.last == self.first:
            return self.high
        growth, length = self.high - self.low, self.last - self.first
        # Rounded up: the reservation covers the reply.
        return self.low - (-growth * (output - self.first) // length)

    def output_for(self, left: int) -> int:
        """Return the output length that this amount pays for."""
        ordinary = self.at(min(self.last, max(self.first, ORDINARY_OUTPUT)))
        room = max(left // SHARE, min(left, ordinary))
        if room >= self.high:
            return self.last
        growth, length = self.high - self.low, self.last - self.first
        return self.first + max(0, room - self.low) * length // growth


def _amount(usage: Usage) -> Amount:
    return Amount(to_picodollars(usage.cost), usage.prompt + usage.output)


class _Accounts:
    """What counts against caps at one moment: settled, assumed and reserved amounts."""

    def __init__(
        self,
        db: sqlite3.Connection,
        summary: Summary,
        events: Sequence[StoredEvent],
        turn_id: str,
        at: float,
    ) -> None:
        self._db = db
        self._summary = after = summary.copy()
        added = (after.add(item.event, turn_id=turn_id, at=at) for item in events)
        self._changes = [change for change in added if change is not None]
        self._task = after.task or turn_id
        self._at = at
        self._day = day_of(at)

    def limits(self, caps: Caps) -> list[Limit]:
        found: list[Limit] = []
        for scope, cap in caps.active():
            who = {"principal": self._summary.principal, "job": self._summary.job}
            key = cap_key(scope, at=self._at, turn_id=self._task, **who)
            query = "SELECT sum(cost), sum(tokens) FROM raised WHERE scope = ? AND key = ?"
            spent, raised = self._sum_spent(scope), self._sum(query, (scope, key))
            if cap.usd is not None:
                usd = to_picodollars(cap.usd) + raised.cost
                found.append(Limit(scope, key, "usd", usd, spent.cost))
            if cap.tokens is not None:
                found.append(Limit(scope, key, "tokens", cap.tokens + raised.tokens, spent.tokens))
        return found

    def pending(self, scope: CapScope) -> Amount:
        """Return the amount reserved for calls that have not ended."""
        summary, day = self._summary, self._day
        conditions: dict[CapScope, tuple[str, tuple[object, ...]]] = {
            "day": ("a.day = ?", (day,)),
            "month": ("a.day BETWEEN ? AND ?", (first_day_of_month(self._at), day)),
            "person": ("a.day = ? AND m.principal = ?", (day, summary.principal)),
            "job": ("m.job = ?", (summary.job,)),
            "task": (
                "m.job = ? AND (a.turn = ? OR m.task = ?)",
                (summary.job, self._task, self._task),
            ),
        }
        where, values = conditions[scope]
        return self._sum(
            "SELECT sum(a.cost), sum(a.input + a.output) FROM assumed AS a"
            f" JOIN summaries AS m USING (session) WHERE a.open = 1 AND {where}",
            values,
        )

    def _sum_spent(self, scope: CapScope) -> Amount:
        sums, summary, day = "SELECT sum(cost), sum(tokens) FROM", self._summary, self._day
        first = first_day_of_month(self._at) if scope == "month" else day
        match scope:
            case "day" | "month":
                days = (first, day)
                found = self._sum(f"{sums} daily WHERE day BETWEEN ? AND ?", days)
            case "person":
                who = (day, summary.principal)
                found = self._sum(f"{sums} daily WHERE day = ? AND principal = ?", who)
            case "job":
                first = 0
                found = self._sum(f"{sums} jobs WHERE job = ?", (summary.job,))
            case "task":
                first = 0
                tree = (
                    "tasks AS t JOIN summaries AS m USING (session) WHERE t.task = ? AND m.job = ?"
                )
                query = f"SELECT sum(t.cost), sum(t.tokens) FROM {tree}"
                found = self._sum(query, (self._task, summary.job))
        changes = [
            change
            for change in self._changes
            if change.day >= first and (scope != "task" or change.task == self._task)
        ]
        return Amount(
            found.cost + sum(change.cost for change in changes),
            found.tokens + sum(change.tokens for change in changes),
        )

    def _sum(self, query: str, values: tuple[object, ...]) -> Amount:
        cost, tokens = self._db.execute(query, values).fetchone()
        return Amount(cost or 0, tokens or 0)


_NAMES: dict[CapScope, str] = {
    "day": "Today's cap",
    "month": "This month's cap",
    "person": "The cap for one person and day",
    "job": "The cap for this job",
    "task": "The cap for one answer",
}


def _budget_error(limit: Limit, needed: int, pending: int) -> BudgetReached:
    size = PICO if limit.unit == "usd" else 1
    cap, spent, asked = limit.cap / size, limit.spent / size, needed / size
    # A rounder, larger number for the example.
    suggested = max(1.0, round(cap * 2, 2))
    if limit.unit == "tokens":
        amounts = (f"{cap:,.0f} tokens", f"{spent:,.0f}", f"{asked:,.0f}")
        setting = f"budget.{limit.scope}.tokens {suggested:.0f}"
    else:
        amounts = (_dollars(cap), _dollars(spent), _dollars(asked))
        setting = f"budget.{limit.scope} {suggested:g}"
    return BudgetReached(
        f"{_NAMES[limit.scope]} of {amounts[0]} does not allow the next model call, which may cost "
        f"{amounts[2]} ({amounts[1]} spent or reserved); raise it with "
        f"`hermes config set {setting}` and say “go on”.",
        scope=limit.scope,
        key=limit.key,
        unit=limit.unit,
        cap=cap,
        spent=spent,
        asked=asked,
        pending=pending / size,
    )


def _dollars(amount: float) -> str:
    """Format an amount in cents, with fractions where there are some."""
    return f"${amount:.4f}".removesuffix("00")
