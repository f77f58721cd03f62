"""Caps hold inside the transaction that books a call, over all sessions and processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.core.caps import NO_CAPS, Cap, Caps
from hermes.core.errors import BudgetReached
from hermes.core.events import CallSettled, CapRaised, CapScope, ModelCalled, TurnStarted
from hermes.core.messages import Usage
from hermes.core.ports import Lease
from hermes.journal import ledger, upkeep
from hermes.journal.export import export_lines
from hermes.journal.import_ import import_lines
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import read_spending
from hermes.journal.reservations import ORDINARY_OUTPUT
from tests.journal.samples import HandClock, journal_in, opened, said

DAY = 86_400
# A hundred tokens of prompt at one cent, a thousand of the answer at a dollar.
MOST = Usage(input=100, output=1_000, requests=1, cost=1.01)
LEAST = Usage(input=100, output=250, requests=1, cost=0.26)
USED = Usage(input=90, output=100, requests=1, cost=0.109)


class BookingSession:
    """Books calls in one session."""

    def __init__(self, journal: SqliteJournal, lease: Lease) -> None:
        self.journal = journal
        self.lease = lease
        self._count = 0

    @classmethod
    async def new(cls, journal: SqliteJournal, name: str, **changes: object) -> BookingSession:
        lease, _ = await journal.create(name, [opened("cli", **changes)])
        return cls(journal, lease)

    async def book(
        self, caps: Caps = NO_CAPS, *, most: Usage = MOST, least: Usage = LEAST, turn: str = "t"
    ) -> ModelCalled:
        self._count += 1
        call = ModelCalled(
            model="m", provider="p", call=f"{self.lease.session_id}.{self._count}", reserved=most
        )
        (record,) = await self.journal.book(
            self.lease, [], call, least=least, caps=caps, turn_id=turn
        )
        assert isinstance(record.event, ModelCalled)
        return record.event

    async def settle(self, call: ModelCalled, usage: Usage, *, certain: bool = True) -> None:
        settled = CallSettled(call=call.call, usage=usage, certain=certain)
        await self.journal.append(self.lease, [settled])


def usd(amount: float, scope: CapScope = "day") -> Caps:
    return Caps(**{scope: Cap(usd=amount)})


def tokens(amount: int, scope: CapScope = "day") -> Caps:
    return Caps(**{scope: Cap(tokens=amount)})


async def test_without_caps_the_whole_is_granted_as_it_is(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        assert (await (await BookingSession.new(journal, "one")).book()).reserved is MOST


@pytest.mark.parametrize(
    ("caps", "output"),
    [
        (usd(100.0), 1_000),
        (usd(1.02), 1_000),
        (usd(0.51), 500),
        (usd(0.26), 250),
        (tokens(1_100), 1_000),
        (tokens(700), 600),
        (Caps(day=Cap(usd=0.51, tokens=500)), 400),
        (Caps(day=Cap(usd=9), month=Cap(usd=8), job=Cap(usd=0.41)), 400),
    ],
)
async def test_as_much_is_granted_as_fits(tmp_path: Path, caps: Caps, output: int) -> None:
    async with journal_in(tmp_path) as journal:
        granted = (await (await BookingSession.new(journal, "one")).book(caps)).reserved
        assert granted is not None
        assert (granted.input, granted.output, granted.requests) == (100, output, 1)
        assert granted.cost == pytest.approx(0.01 + output / 1_000)


async def test_a_long_answer_leaves_something_for_others(tmp_path: Path) -> None:
    most = Usage(input=100, output=100_000, requests=1, cost=1.01)
    least = Usage(input=100, output=256, requests=1, cost=0.01256)
    async with journal_in(tmp_path) as journal:
        first, other = (
            await BookingSession.new(journal, "one"),
            await BookingSession.new(journal, "two"),
        )
        granted = (await first.book(usd(0.8), most=most, least=least)).reserved
        assert granted is not None and granted.output == 9_000
        granted = (await other.book(usd(0.8), most=most, least=least)).reserved
        assert granted is not None and ORDINARY_OUTPUT <= granted.output < 9_000


@pytest.mark.parametrize("caps", [usd(0.25), tokens(349), usd(0.25, "task")])
async def test_nothing_is_written_when_nothing_fits(tmp_path: Path, caps: Caps) -> None:
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        with pytest.raises(BudgetReached) as caught:
            await journal.book(
                session.lease,
                [said("Hello")],
                ModelCalled(model="m", provider="p", call="c", reserved=MOST),
                least=LEAST,
                caps=caps,
            )
        assert len(await journal.read("one")) == 1
        assert await read_spending(journal) == ()
        assert caught.value.spent == 0
        assert "hermes config set budget." in str(caught.value)


async def test_what_is_settled_makes_room(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        first = await session.book(usd(1.02))
        with pytest.raises(BudgetReached) as caught:
            await session.book(usd(1.02))
        assert (caught.value.spent, caught.value.pending) == (1.01, 1.01)
        assert caught.value.is_passing
        await session.settle(first, USED)
        await session.book(usd(1.02))


async def test_what_is_settled_together_with_the_next_call_makes_room_for_it(
    tmp_path: Path,
) -> None:
    caps = Caps(**{scope: Cap(usd=1.02) for scope in ("day", "month", "person", "job", "task")})
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        await journal.append(session.lease, [TurnStarted(takes=())], turn_id="t")
        refused = await session.book(caps)
        settled = CallSettled(call=refused.call, usage=Usage(requests=1, cost=0.0))
        again = ModelCalled(model="m", provider="p", call="again", reserved=MOST)
        booking = journal.book(session.lease, [settled], again, least=LEAST, caps=caps, turn_id="t")
        assert (await booking)[0].event == settled
        (line,) = await read_spending(journal)
        assert (line.calls, line.assumed_calls, line.assumed.cost) == (2, 1, 1.01)


async def test_what_is_not_certain_takes_room_until_it_is(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        lost = await session.book(usd(1.02))
        await session.settle(lost, MOST, certain=False)
        with pytest.raises(BudgetReached) as caught:
            await session.book(usd(1.02))
        assert (caught.value.pending, caught.value.is_passing) == (0, False)
        # A receipt comes later, and then another, which does not count.
        await session.settle(lost, USED)
        await session.settle(lost, MOST)
        (line,) = await read_spending(journal)
        assert (line.calls, line.assumed_calls, line.usage.cost) == (1, 0, 0.109)
        await session.book(usd(1.02))


async def test_a_price_that_is_not_known_is_held_by_tokens_alone(tmp_path: Path) -> None:
    most, least = (Usage(input=100, output=n, requests=1) for n in (1_000, 250))
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        await session.book(usd(0.0001), most=most, least=least)
        with pytest.raises(BudgetReached) as caught:
            await session.book(tokens(1_300), most=most, least=least)
        assert (caught.value.unit, caught.value.spent) == ("tokens", 1_100)
        (line,) = await read_spending(journal)
        assert (line.assumed_calls, line.assumed.cost) == (1, None)


async def spends(session: BookingSession, scope: CapScope, *, turn: str = "t") -> bool:
    """Whether a second call of half a cap is too much."""
    try:
        call = await session.book(usd(0.5, scope), turn=turn, most=LEAST)
    except BudgetReached:
        return True
    await session.settle(call, LEAST)
    return False


@pytest.mark.parametrize(
    ("scope", "shared"),
    [
        ("day", {"same", "child", "guest", "stranger"}),
        ("month", {"same", "child", "guest", "stranger", "tomorrow"}),
        ("person", {"same", "child", "stranger"}),
        ("job", {"same", "child", "tomorrow"}),
        ("task", {"same"}),
    ],
)
async def test_who_shares_a_cap(tmp_path: Path, scope: CapScope, shared: set[str]) -> None:
    clock = HandClock(20_001 * DAY + 100.0)
    async with journal_in(tmp_path, clock) as journal:
        session = await BookingSession.new(journal, "one", job="work")
        await journal.append(session.lease, [TurnStarted(takes=())], turn_id="t")
        assert not await spends(session, scope)
        found = {"same"} if await spends(session, scope) else set()
        for name, changes in {
            "child": {"parent": "one", "job": "work"},
            "guest": {"principal": "guest"},
            "stranger": {},
        }.items():
            other = await BookingSession.new(journal, name, **changes)
            found |= {name} if await spends(other, scope, turn="other") else set()
        clock.time += DAY
        if await spends(session, scope, turn="later"):
            found.add("tomorrow")
        assert found == shared
        clock.time += 40 * DAY
        assert await spends(session, scope, turn="much later") == (scope == "job")


async def test_a_turn_and_the_sub_sessions_that_it_started_share_its_cap(tmp_path: Path) -> None:
    caps = usd(1.0, "task")
    async with journal_in(tmp_path) as journal:
        root = await BookingSession.new(journal, "root")
        below = {"parent": "root", "job": "root", "task": "first"}
        child = await BookingSession.new(journal, "child", **below)
        deeper = await BookingSession.new(journal, "deeper", **(below | {"parent": "child"}))
        for session, turn in ((root, "first"), (child, "of child"), (deeper, "of deeper")):
            call = await session.book(caps, most=LEAST, turn=turn)
            await session.settle(call, LEAST)
        for session, turn in ((root, "first"), (child, "another"), (deeper, "of deeper")):
            with pytest.raises(BudgetReached) as caught:
                await session.book(caps, most=LEAST, turn=turn)
            assert caught.value.key == "first"
            assert caught.value.spent == pytest.approx(3 * 0.26)
        # The next turn starts anew, while the child sessions still count for the first.
        call = await root.book(caps, most=LEAST, turn="second")
        with pytest.raises(BudgetReached):
            await child.book(caps, most=LEAST, turn="another")
        raised = CapRaised(scope="task", key="first", usd=1.0)
        await journal.append(root.lease, [raised])
        await child.book(caps, most=LEAST, turn="another")
        await journal.writing(lambda tx: ledger.rebuild(tx.db))
        with pytest.raises(BudgetReached) as caught:
            await child.book(usd(1.0, "task"), most=MOST, least=MOST, turn="another")
        assert caught.value.spent == pytest.approx(4 * 0.26)


async def test_a_person_may_allow_more(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        await session.book(usd(1.02))
        with pytest.raises(BudgetReached) as caught:
            await session.book(usd(1.02))
        key = caught.value.key
        await journal.append(session.lease, [CapRaised(scope="day", key=key, usd=1.0)])
        await session.book(usd(1.02))
        await journal.append(session.lease, [CapRaised(scope="day", key="another day", usd=9.0)])
        with pytest.raises(BudgetReached) as caught:
            await session.book(usd(1.02))
        assert caught.value.cap == 2.02


async def test_two_processes_at_once_do_not_spend_the_same_cent(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as here, journal_in(tmp_path) as there:
        sessions = [await BookingSession.new(j, f"{n}") for n, j in enumerate([here, there] * 10)]
        booked = await asyncio.gather(
            *(session.book(usd(3.0), most=LEAST) for session in sessions), return_exceptions=True
        )
        granted = [call for call in booked if isinstance(call, ModelCalled)]
        assert len(granted) == 11
        assert all(isinstance(call, ModelCalled | BudgetReached) for call in booked)


async def test_deleting_a_session_gives_no_budget_back(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        session, other = (
            await BookingSession.new(journal, "one"),
            await BookingSession.new(journal, "two"),
        )
        await session.settle(await session.book(), USED)
        await session.settle(await session.book(), MOST, certain=False)
        before = await read_spending(journal)
        (line,) = [line async for line in export_lines(journal, ["one"])]
        await journal.release(session.lease)
        await upkeep.delete(journal, "one")
        assert await read_spending(journal) == before
        with pytest.raises(BudgetReached):
            await other.book(usd(1.2))
        await journal.writing(lambda tx: tx.db.execute("DROP TABLE daily"))
    async with journal_in(tmp_path) as journal:
        assert await read_spending(journal) == before
        with pytest.raises(BudgetReached) as caught:
            await BookingSession(journal, await journal.acquire("two")).book(usd(1.2))
        assert caught.value.spent == pytest.approx(1.119)
        # It comes back from an archive: it counts once.
        await import_lines(journal, [line])
        assert await read_spending(journal) == before
        with pytest.raises(BudgetReached) as caught:
            await BookingSession(journal, await journal.acquire("one")).book(usd(1.2))
        assert caught.value.spent == pytest.approx(1.119)


async def test_a_look_at_the_caps_does_not_grow_with_the_past(tmp_path: Path) -> None:
    caps = Caps(**{scope: Cap(usd=1e9) for scope in ("day", "month", "person", "job", "task")})
    async with journal_in(tmp_path) as journal:
        session = await BookingSession.new(journal, "one")
        for _ in range(50):
            await session.settle(await session.book(caps, most=LEAST), USED)
        rows = await journal.reading(
            lambda db: [
                db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("daily", "jobs", "assumed", "usage")
            ]
        )
        assert rows == [1, 1, 0, 1]
