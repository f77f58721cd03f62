"""What every Journal must do. An implementation brings a fixture `open_journal`: each call gives
one more process' view of the same home, closed by the fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import pytest

from hermes.core.commands import Interrupt, Say
from hermes.core.errors import Fenced, JournalError, NotFound, SessionBusy, UsageError
from hermes.core.events import Record, TitleChanged, TurnStarted
from hermes.core.ports import InboxCommand, Journal
from tests.journal.samples import exchange, opened, replied, said

OpenJournal: TypeAlias = Callable[[], Journal]


async def test_what_is_appended_is_read_back(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, first = await journal.create("one", [opened()])
    second = await journal.append(lease, exchange(1, 2), turn_id="turn_1")
    assert [record.n for record in (*first, *second)] == list(range(1, 12))
    assert {record.turn_id for record in second} == {"turn_1"}
    assert [record.event for record in second] == exchange(1, 2)
    assert await journal.read("one") == (*first, *second)


async def test_another_process_reads_the_same(open_journal: OpenJournal) -> None:
    journal = open_journal()
    _, records = await journal.create("one", [opened(), *exchange(1, 2)])
    assert await open_journal().read("one") == records


async def test_reading_can_begin_in_the_middle(open_journal: OpenJournal) -> None:
    journal = open_journal()
    _, records = await journal.create("one", [opened(), *exchange(1, 2)])
    assert await journal.read("one", after=4) == records[4:]
    assert await journal.read("one", after=99) == ()


async def test_a_session_that_is_not_there(open_journal: OpenJournal) -> None:
    journal = open_journal()
    for attempt in (journal.read("one"), journal.acquire("one"), journal.post("one", Interrupt())):
        with pytest.raises(NotFound):
            await attempt


async def test_an_id_is_used_once(open_journal: OpenJournal) -> None:
    journal = open_journal()
    _, records = await journal.create("one", [opened()])
    with pytest.raises(JournalError):
        await journal.create("one", [opened()])
    assert await journal.read("one") == records


async def test_a_session_begins_with_its_opening(open_journal: OpenJournal) -> None:
    journal = open_journal()
    for events in ([], [said("Hi")]):
        with pytest.raises(UsageError):
            await journal.create("one", events)


async def test_a_message_with_a_known_key_is_left_out(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, _ = await journal.create("one", [opened(), said("Hi", key="m1")])
    written = await journal.append(
        lease, [said("Hi again", key="m1"), said("Next", key="m2"), TurnStarted(takes=(2, 3))]
    )
    assert [(record.n, record.event) for record in written] == [
        (3, said("Next", key="m2")),
        (4, TurnStarted(takes=(2, 3))),
    ]
    assert await journal.append(lease, [said("Once more", key="m2")]) == ()


async def test_keys_of_one_session_do_not_bind_another(open_journal: OpenJournal) -> None:
    journal = open_journal()
    await journal.create("one", [opened(), said("Hi", key="m1")])
    _, records = await journal.create("two", [opened(), said("Hi", key="m1")])
    assert len(records) == 2


async def test_messages_without_a_key_are_never_the_same(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, _ = await journal.create("one", [opened()])
    assert len(await journal.append(lease, [said("Hi"), said("Hi")])) == 2


async def test_text_of_any_kind_survives(open_journal: OpenJournal) -> None:
    journal = open_journal()
    text = 'a"b\\c\n\t\x00\x1f\x7f é 漢 \u202e 🧭 {"type":"titled"}'
    lease, _ = await journal.create("one", [opened(system=text), said(text), replied(text)])
    await journal.append(lease, [said("")])
    events = [record.event for record in await journal.read("one")]
    assert events == [opened(system=text), said(text), replied(text), said("")]


async def test_a_session_has_one_owner(open_journal: OpenJournal) -> None:
    journal, other = open_journal(), open_journal()
    await journal.create("one", [opened()])
    for somebody in (other, journal):
        with pytest.raises(SessionBusy):
            await somebody.acquire("one")


async def test_a_released_session_can_be_owned_again(open_journal: OpenJournal) -> None:
    journal, other = open_journal(), open_journal()
    lease, _ = await journal.create("one", [opened()])
    await journal.release(lease)
    taken = await other.acquire("one")
    assert taken.fence > lease.fence
    (record,) = await other.append(taken, [said("Hi")])
    assert record.n == 2


async def test_a_lease_that_was_given_back_writes_nothing(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, records = await journal.create("one", [opened()])
    await journal.release(lease)
    await journal.release(lease)
    with pytest.raises(Fenced):
        await journal.append(lease, [said("Too late")])
    assert await journal.read("one") == records


async def test_owners_may_change_back_and_forth(open_journal: OpenJournal) -> None:
    journal, other = open_journal(), open_journal()
    lease, _ = await journal.create("one", [opened()])
    numbers = []
    for turn in range(6):
        owner = other if turn % 2 else journal
        if turn:
            lease = await owner.acquire("one")
        numbers += [record.n for record in await owner.append(lease, [said("a"), said("b")])]
        await owner.release(lease)
    assert numbers == list(range(2, 14))


async def test_an_append_is_all_or_nothing(open_journal: OpenJournal) -> None:
    journal = open_journal()
    await journal.create("one", [opened(), TitleChanged(title="Plan")])
    lease, records = await journal.create("two", [opened()])
    with pytest.raises(UsageError):
        await journal.append(lease, [said("Hi"), TitleChanged(title="Plan")])
    assert await journal.read("two") == records
    (record,) = await journal.append(lease, [said("Hi")])
    assert record.n == 2


async def test_appends_side_by_side_are_numbered_without_gaps(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, _ = await journal.create("one", [opened()])
    batches = await asyncio.gather(
        *(journal.append(lease, [said(f"{number}a"), said(f"{number}b")]) for number in range(50))
    )
    assert sorted(record.n for batch in batches for record in batch) == list(range(2, 102))
    assert all(batch[1].n == batch[0].n + 1 for batch in batches)


async def test_a_fork_begins_with_what_it_shares(open_journal: OpenJournal) -> None:
    journal = open_journal()
    _, parent = await journal.create("one", [opened(), *exchange(1, 2)])
    opening = opened(parent="one", parent_n=5)
    _, own = await journal.create("two", [opening, said("Another way")])
    assert [record.n for record in own] == [6, 7]
    assert await journal.read("two") == (*parent[:5], *own)
    assert await journal.read("two", after=4) == (parent[4], *own)
    assert await journal.read("one") == parent


async def test_a_fork_of_a_fork_reads_through_both(open_journal: OpenJournal) -> None:
    journal = open_journal()
    _, one = await journal.create("one", [opened(), *exchange(1, 2)])
    _, two = await journal.create("two", [opened(parent="one", parent_n=5), said("b"), said("c")])
    _, three = await journal.create("three", [opened(parent="two", parent_n=7), said("d")])
    _, four = await journal.create("four", [opened(parent="two", parent_n=3)])
    assert await journal.read("three") == (*one[:5], *two[:2], *three)
    assert await journal.read("four") == (*one[:3], *four)


async def test_a_fork_knows_the_keys_it_shares(open_journal: OpenJournal) -> None:
    journal = open_journal()
    await journal.create("one", [opened(), said("Hi", key="m1"), said("Ho", key="m2")])
    lease, _ = await journal.create("two", [opened(parent="one", parent_n=2)])
    written = await journal.append(lease, [said("Hi", key="m1"), said("Ho", key="m2")])
    assert [record.event for record in written] == [said("Ho", key="m2")]


async def test_a_fork_needs_its_parent(open_journal: OpenJournal) -> None:
    journal = open_journal()
    with pytest.raises(NotFound):
        await journal.create("two", [opened(parent="one", parent_n=5)])
    await journal.create("one", [opened()])
    with pytest.raises(UsageError):
        await journal.create("two", [opened(parent="one", parent_n=2)])


async def test_a_child_that_shares_nothing_is_on_its_own(open_journal: OpenJournal) -> None:
    journal = open_journal()
    await journal.create("one", [opened(), said("Hi")])
    _, records = await journal.create("two", [opened(parent="one")])
    assert await journal.read("two") == records
    assert records[0].n == 1


async def test_commands_wait_for_the_owner(open_journal: OpenJournal) -> None:
    journal, other = open_journal(), open_journal()
    lease, _ = await journal.create("one", [opened()])
    await other.post("one", Say(text="First"))
    await other.post("one", Interrupt())
    waiting = await journal.pending_commands(lease)
    assert [item.command for item in waiting] == [Say(text="First"), Interrupt()]
    assert await journal.pending_commands(lease) == waiting
    await journal.acknowledge(lease, [waiting[0].id])
    assert await journal.pending_commands(lease) == waiting[1:]


async def test_commands_wait_for_the_next_owner_too(open_journal: OpenJournal) -> None:
    journal, other = open_journal(), open_journal()
    lease, _ = await journal.create("one", [opened()])
    await journal.release(lease)
    await journal.post("one", Say(text="Hello?"))
    taken = await other.acquire("one")
    assert [item.command for item in await other.pending_commands(taken)] == [Say(text="Hello?")]
    with pytest.raises(Fenced):
        await journal.pending_commands(lease)


async def test_a_key_is_posted_once_even_after_it_was_taken(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, _ = await journal.create("one", [opened()])
    await journal.post("one", Say(text="Hi"), key="m1")
    await journal.post("one", Say(text="Hi"), key="m1")
    (waiting,) = await journal.pending_commands(lease)
    await journal.acknowledge(lease, [waiting.id])
    await journal.post("one", Say(text="Hi"), key="m1")
    assert await journal.pending_commands(lease) == ()
    await journal.post("one", Say(text="Hi"))
    await journal.post("one", Say(text="Hi"))
    assert len(await journal.pending_commands(lease)) == 2


async def test_ids_of_commands_are_never_used_again(open_journal: OpenJournal) -> None:
    journal = open_journal()
    lease, _ = await journal.create("one", [opened()])
    seen: list[InboxCommand] = []
    for number in range(3):
        await journal.post("one", Say(text=f"{number}"))
        (waiting,) = await journal.pending_commands(lease)
        await journal.acknowledge(lease, [waiting.id])
        seen.append(waiting)
    assert len({item.id for item in seen}) == 3


async def test_sessions_are_told_apart(open_journal: OpenJournal) -> None:
    journal = open_journal()
    records: dict[str, list[Record]] = {}
    leases = {}
    for name in ("one", "two", "three"):
        leases[name], first = await journal.create(name, [opened(name)])
        records[name] = list(first)
    for number in range(20):
        for name, lease in leases.items():
            records[name] += await journal.append(lease, [said(f"{name} {number}")])
    for name, expected in records.items():
        assert list(await journal.read(name)) == expected
