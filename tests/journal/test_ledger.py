"""Whatever is booked, settled, lost, deleted, rebuilt: the ledger is what events add up to."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hermes.core.caps import NO_CAPS, Cap, Caps, day_of
from hermes.core.errors import BudgetReached, UsageError
from hermes.core.events import CallSettled, CapRaised, DurableEvent, ModelCalled, TurnStarted
from hermes.core.messages import Usage
from hermes.core.ports import Lease
from hermes.journal import upkeep
from hermes.journal.export import export_lines
from hermes.journal.import_ import import_lines
from hermes.journal.listing import read_spending
from hermes.journal.schema import DERIVED_TABLES
from hermes.journal.summaries import to_picodollars
from tests.journal.samples import HandClock, journal_in, opened, replied

T = TypeVar("T")
PICK = st.integers(0, 50)
COSTS = st.one_of(st.none(), st.integers(0, 10**6).map(lambda n: n / 10**7))
USAGES = st.builds(
    Usage,
    input=st.integers(0, 9_000),
    output=st.integers(0, 9_000),
    cache_read=st.integers(0, 500),
    cache_write=st.integers(0, 500),
    cost=COSTS,
)
CAUSES = st.sampled_from(["chat", "retry", "title"])
DAY_CAP = 0.5


class LedgerMachine(RuleBasedStateMachine):
    """One home. `counted` is what each call counts for on its day, `open` are those that are not
    certain, `frozen` those of them that lie in an archive."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="hermes-ledger-"))
        self.clock = HandClock()
        self.runner = asyncio.Runner()
        self.journal = journal_in(self.home, self.clock)
        self.leases: dict[str, Lease] = {}
        self.turns: dict[str, int] = {}
        self.counted: dict[tuple[str, str], tuple[int, int, int]] = {}
        self.open: set[tuple[str, str]] = set()
        self.frozen: set[tuple[str, str]] = set()
        self.archived: dict[str, bytes] = {}
        self.count = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.journal.close())
        self.runner.close()
        shutil.rmtree(self.home)

    def append(self, name: str, *events: DurableEvent) -> None:
        turn = f"{name}.{self.turns[name]}"
        self.run(self.journal.append(self.leases[name], events, turn_id=turn))

    def count_call(self, name: str, call: str, usage: Usage, day: int | None = None) -> None:
        day = day_of(self.clock.time) if day is None else day
        amounts = (usage.prompt + usage.output, to_picodollars(usage.cost))
        self.counted[name, call] = (day, *amounts)

    @rule(principal=st.sampled_from(["owner", "guest"]), parent=st.booleans())
    def create(self, principal: str, parent: bool) -> None:
        self.count += 1
        name = f"s{self.count:03}"
        above = {"parent": sorted(self.leases)[0]} if parent and self.leases else {}
        event = opened("cli", principal=principal, **above)
        self.leases[name], _ = self.run(self.journal.create(name, [event]))
        self.turns[name] = 0

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, usage=USAGES, cause=CAUSES, capped=st.booleans())
    def book(self, pick: int, usage: Usage, cause: str, capped: bool) -> None:
        name = sorted(self.leases)[pick % len(self.leases)]
        self.count += 1
        call = ModelCalled(
            model="m", provider="p", call=f"c{self.count}", cause=cause, reserved=usage
        )
        turn = f"{name}.{self.turns[name]}"
        caps = Caps(day=Cap(usd=DAY_CAP)) if capped else NO_CAPS
        booking = self.journal.book(
            self.leases[name], [], call, least=usage, caps=caps, turn_id=turn
        )
        today = self.spent_today()
        try:
            (record,) = self.run(booking)
        except BudgetReached:
            assert capped and today + to_picodollars(usage.cost) > to_picodollars(DAY_CAP)
            return
        assert isinstance(record.event, ModelCalled) and record.event.reserved is not None
        if capped and usage.cost is not None:
            assert today + to_picodollars(usage.cost) <= to_picodollars(DAY_CAP)
        self.count_call(name, call.call, record.event.reserved)
        self.open.add((name, call.call))

    @precondition(lambda self: self.open)
    @rule(pick=PICK, usage=USAGES, certain=st.booleans())
    def settle(self, pick: int, usage: Usage, certain: bool) -> None:
        name, call = sorted(self.open)[pick % len(self.open)]
        self.append(name, CallSettled(call=call, usage=usage, certain=certain))
        self.count_call(name, call, usage, day=self.counted[name, call][0])
        if certain:
            self.open.discard((name, call))

    @precondition(lambda self: self.counted)
    @rule(pick=PICK, usage=USAGES)
    def settle_once_more(self, pick: int, usage: Usage) -> None:
        settled = sorted(set(self.counted) - self.open - self.frozen)
        if settled and (found := settled[pick % len(settled)])[0] in self.leases:
            self.append(found[0], CallSettled(call=found[1], usage=usage))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, usage=USAGES)
    def answer_as_old_records_do(self, pick: int, usage: Usage) -> None:
        name = sorted(self.leases)[pick % len(self.leases)]
        self.count += 1
        self.append(name, ModelCalled(model="m", provider="p"), replied("Yes.", usage))
        self.count_call(name, f"old{self.count}", usage)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK)
    def begin_a_turn(self, pick: int) -> None:
        name = sorted(self.leases)[pick % len(self.leases)]
        self.turns[name] += 1
        self.append(name, TurnStarted(takes=()))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, tokens=st.integers(1, 9))
    def raise_a_cap(self, pick: int, tokens: int) -> None:
        name = sorted(self.leases)[pick % len(self.leases)]
        self.append(name, CapRaised(scope="job", key="x", tokens=tokens))

    @precondition(lambda self: self.leases)
    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        name = sorted(self.leases)[pick % len(self.leases)]
        (line,) = self.run(self.lines(name))
        self.run(self.journal.release(self.leases.pop(name)))
        try:
            self.run(upkeep.delete(self.journal, name))
        except UsageError:
            self.leases[name] = self.run(self.journal.acquire(name))
            return
        self.archived[name] = line
        self.frozen |= {key for key in self.open if key[0] == name}
        self.open -= self.frozen

    @precondition(lambda self: self.archived)
    @rule(pick=PICK)
    def bring_back(self, pick: int) -> None:
        name = sorted(self.archived)[pick % len(self.archived)]
        self.run(import_lines(self.journal, [self.archived.pop(name)]))
        self.leases[name] = self.run(self.journal.acquire(name))
        back = {key for key in self.frozen if key[0] == name}
        self.open, self.frozen = self.open | back, self.frozen - back

    async def lines(self, name: str) -> list[bytes]:
        return [line async for line in export_lines(self.journal, [name])]

    @rule(seconds=st.sampled_from([10, 50_000, 90_000]))
    def wait(self, seconds: int) -> None:
        self.clock.time += seconds

    @rule()
    def crash(self) -> None:
        self.run(self.journal.close())
        self.journal = journal_in(self.home, self.clock)
        for name in self.leases:
            self.leases[name] = self.run(self.journal.acquire(name))

    @precondition(lambda self: self.count)
    @rule(table=st.sampled_from(DERIVED_TABLES))
    def lose_a_table(self, table: str) -> None:
        before = self.derived()
        self.run(self.journal.close())
        db = sqlite3.connect(self.home / "hermes.db", isolation_level=None)
        db.execute(f"DROP TABLE IF EXISTS {table}")
        db.close()
        self.journal = journal_in(self.home, self.clock)
        for name in self.leases:
            self.leases[name] = self.run(self.journal.acquire(name))
        self.run(self.journal.writing(lambda tx: tx.db.execute("SELECT 1")))
        assert self.derived() == before

    def derived(self) -> dict[str, list[Any]]:
        if not (self.home / "hermes.db").exists():
            return {}
        db = sqlite3.connect(self.home / "hermes.db")
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        found = {
            table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for table in DERIVED_TABLES
            if table in tables
        }
        db.close()
        # A row of nothing says nothing.
        for table, size in (("daily", 2), ("jobs", 1)):
            found[table] = [row for row in found.get(table, []) if any(row[size:])]
        return found

    def spent_today(self) -> int:
        today = day_of(self.clock.time)
        return sum(cost for day, _, cost in self.counted.values() if day == today)

    @invariant()
    def days_add_up(self) -> None:
        sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for day, tokens, cost in self.counted.values():
            sums[day][0] += tokens
            sums[day][1] += cost
        found: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for day, _, tokens, cost in self.derived().get("daily", []):
            found[day][0] += tokens
            found[day][1] += cost
        assert found == {day: amounts for day, amounts in sums.items() if any(amounts)}

    @invariant()
    def lines_add_up(self) -> None:
        lines = self.run(read_spending(self.journal)) if self.leases else ()
        if not self.leases:
            return
        tokens = sum(
            each.prompt + each.output for line in lines for each in (line.usage, line.assumed)
        )
        assert tokens == sum(tokens for _, tokens, _ in self.counted.values())
        assert sum(line.assumed_calls for line in lines) == len(self.open | self.frozen)


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
