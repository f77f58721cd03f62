"""Any order of actions by two processes leaves the journal as a plain dictionary would have it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hermes.core.errors import Fenced, SessionBusy, UsageError
from hermes.core.events import DurableEvent, Record
from hermes.core.ports import Lease
from hermes.journal import sessions, upkeep
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import session_info
from hermes.journal.verify import verify
from tests.journal.samples import HandClock, journal_in, opened, said

T = TypeVar("T")
SIDES = st.sampled_from([0, 1])
PICK = st.integers(0, 50)
KEYS = st.sampled_from(["", "", "a", "b", "c"])


class JournalMachine(RuleBasedStateMachine):
    """Two journals on one home; `model` is what must be read, `owned` who holds which lease."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="hermes-model-"))
        self.clock = HandClock()
        self.runner = asyncio.Runner()
        self.sides = [journal_in(self.home, self.clock), journal_in(self.home, self.clock)]
        self.model: dict[str, list[Record]] = {}
        self.keys: dict[str, set[str]] = {}
        self.parents: dict[str, str] = {}
        self.owned: dict[str, tuple[int, Lease]] = {}
        self.count = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        assert self.run(verify(self.sides[0])) == ()
        for journal in self.sides:
            self.run(journal.close())
        self.runner.close()
        shutil.rmtree(self.home)

    def pick(self, number: int) -> str:
        return sorted(self.model)[number % len(self.model)]

    @rule(side=SIDES)
    def create(self, side: int) -> None:
        self.count += 1
        session_id = f"s{self.count:03}"
        lease, records = self.run(self.sides[side].create(session_id, [opened()]))
        self.model[session_id] = list(records)
        self.keys[session_id] = set()
        self.owned[session_id] = (side, lease)

    @precondition(lambda self: self.owned)
    @rule(number=PICK, keys=st.lists(KEYS, min_size=1, max_size=4))
    def append(self, number: int, keys: list[str]) -> None:
        session_id = sorted(self.owned)[number % len(self.owned)]
        side, lease = self.owned[session_id]
        events: list[DurableEvent] = [said(f"{self.count} {key}", key) for key in keys]
        written = self.run(self.sides[side].append(lease, events))
        fresh = [key for at, key in enumerate(keys) if not key or key not in keys[:at]]
        known = self.keys[session_id]
        assert len(written) == sum(not key or key not in known for key in fresh)
        known.update(key for key in keys if key)
        self.model[session_id] += written

    @precondition(lambda self: self.model)
    @rule(side=SIDES, number=PICK)
    def acquire(self, side: int, number: int) -> None:
        session_id = self.pick(number)
        try:
            lease = self.run(self.sides[side].acquire(session_id))
        except SessionBusy:
            assert session_id in self.owned
        else:
            assert session_id not in self.owned
            self.owned[session_id] = (side, lease)

    @precondition(lambda self: self.owned)
    @rule(number=PICK)
    def release(self, number: int) -> None:
        session_id = sorted(self.owned)[number % len(self.owned)]
        side, lease = self.owned.pop(session_id)
        self.run(self.sides[side].release(lease))
        try:
            self.run(self.sides[side].append(lease, [said("late")]))
        except Fenced:
            return
        raise AssertionError("a lease that was given back still writes")

    @precondition(lambda self: self.model)
    @rule(side=SIDES, number=PICK, back=st.integers(0, 5))
    def fork(self, side: int, number: int, back: int) -> None:
        parent = self.pick(number)
        records = self.model[parent]
        shared = records[: max(1, len(records) - back)]
        journal = self.sides[side]
        copy = self.run(sessions.fork(journal, parent, at=shared[-1].n))
        own = self.run(journal.read(copy, after=shared[-1].n))
        self.model[copy] = [*shared, *own]
        self.keys[copy] = {r.event.key for r in shared if hasattr(r.event, "key") and r.event.key}
        self.parents[copy] = parent

    @precondition(lambda self: self.model)
    @rule(side=SIDES, number=PICK)
    def delete(self, side: int, number: int) -> None:
        session_id = self.pick(number)
        try:
            self.run(upkeep.delete(self.sides[side], session_id))
        except SessionBusy:
            assert session_id in self.owned
        except UsageError:
            assert session_id in self.parents.values()
        else:
            del self.model[session_id]
            self.parents.pop(session_id, None)

    @rule(side=SIDES)
    def restart(self, side: int) -> None:
        self.run(self.sides[side].close())
        self.sides[side] = journal_in(self.home, self.clock)
        self.owned = {id: held for id, held in self.owned.items() if held[0] != side}

    @rule(side=SIDES)
    def lose_the_derived_tables(self, side: int) -> None:
        def drop(journal: SqliteJournal) -> Coroutine[Any, Any, object]:
            return journal.writing(lambda tx: tx.db.execute("DROP TABLE IF EXISTS summaries"))

        self.run(drop(self.sides[side]))
        for each in (0, 1):
            self.restart(each)

    @invariant()
    def both_read_what_was_written(self) -> None:
        for session_id, records in self.model.items():
            for journal in self.sides:
                assert list(self.run(journal.read(session_id))) == records

    @invariant()
    def the_list_agrees(self) -> None:
        for session_id, records in self.model.items():
            info = self.run(session_info(self.sides[0], session_id))
            assert info is not None
            assert info.last_n == records[-1].n


TestJournal = JournalMachine.TestCase
TestJournal.settings = settings(
    max_examples=15,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
