"""Finding, naming and forking sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.commands import Archive, Retitle
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import (
    Archived,
    DurableEvent,
    MessageReceived,
    ModelSwitched,
    SessionOpened,
    TitleChanged,
    Withdrawn,
)
from hermes.core.messages import user_says
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import session_info
from hermes.journal.sessions import (
    Lineage,
    find,
    fork,
    free_title,
    lineage,
    newest,
    retitle,
    set_archived,
)
from hermes.journal.verify import verify
from tests.journal.samples import HandClock, exchange, journal_in, opened, said


async def titled(journal: SqliteJournal, session_id: str, title: str = "") -> None:
    events: list[DurableEvent] = [opened(), *([TitleChanged(title=title)] if title else [])]
    lease, _ = await journal.create(session_id, events)
    await journal.release(lease)


async def fill(journal: SqliteJournal) -> None:
    await titled(journal, "20260101_101010_aaaaaa", "Plan")
    await titled(journal, "20260101_111111_bbbbbb", "Plan #2")
    await titled(journal, "20260102_101010_cccccc", "Plan #10")
    await titled(journal, "20260103_101010_dddddd", "Garden party")
    await titled(journal, "20260104_101010_eeeeee")


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("20260101_101010_aaaaaa", "20260101_101010_aaaaaa"),
        ("20260102", "20260102_101010_cccccc"),
        (" 20260104_1 ", "20260104_101010_eeeeee"),
        ("Plan", "20260102_101010_cccccc"),
        ("Plan #2", "20260101_111111_bbbbbb"),
        ("Garden party", "20260103_101010_dddddd"),
    ],
)
async def test_a_session_is_found(tmp_path: Path, text: str, id: str) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        assert await find(journal, text) == id


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("20260101", ("20260101_111111_bbbbbb", "20260101_101010_aaaaaa")),
        ("dddd", ("20260103_101010_dddddd",)),
        ("garden", ("20260103_101010_dddddd",)),
        ("the party plans", ("20260103_101010_dddddd",)),
        ("zebra", ()),
        ("", ()),
    ],
)
async def test_what_is_not_found_has_neighbours(
    tmp_path: Path, text: str, near: tuple[str, ...]
) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        with pytest.raises(NotFound) as caught:
            await find(journal, text)
        assert caught.value.near == near


async def test_the_newest_session_is_the_one_used_last(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        assert await newest(journal) is None
        one, _ = await journal.create("one", [opened("cli")])
        clock.time += 5
        await journal.create("two", [opened("telegram")])
        clock.time += 5
        await journal.append(one, [said("Hi")])
        clock.time += 5
        await journal.create("three", [opened("telegram")])
        assert await newest(journal, "cli") == "one"
        assert await newest(journal, "telegram") == "three"
        assert await newest(journal) == "three"
        assert await newest(journal, "cron") is None


async def test_a_session_is_renamed(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        id = "20260104_101010_eeeeee"
        assert await retitle(journal, id, "  My\u200b \u202eplan\n\x07 here ") == "My plan here"
        assert await find(journal, "My plan here") == id
        assert await retitle(journal, id, "My plan here") == "My plan here"
        with pytest.raises(UsageError, match="20260103_101010_dddddd"):
            await retitle(journal, id, "Garden party")
        with pytest.raises(UsageError, match="101 characters"):
            await retitle(journal, id, "x" * 101)
        assert await retitle(journal, id, "") == ""
        info = await session_info(journal, id)
        assert info is not None
        assert info.title == ""
        with pytest.raises(NotFound):
            await retitle(journal, "nobody", "Name")


async def test_a_session_that_is_open_elsewhere_is_asked_to_rename_itself(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as owner, journal_in(tmp_path) as other:
        lease, records = await owner.create("one", [opened()])
        await retitle(other, "one", "Plan")
        assert await owner.read("one") == records
        (waiting,) = await owner.pending_commands(lease)
        assert waiting.command == Retitle(title="Plan")


async def test_a_session_is_put_away_and_brought_back(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        id = "20260103_101010_dddddd"
        for away in (True, True, False):
            await set_archived(journal, id, away=away)
            info = await session_info(journal, id)
            assert info is not None
            assert info.archived is away
            assert await find(journal, "Garden party") == id
        told = [record.event for record in await journal.read(id)]
        assert told[2:] == [Archived(away=True), Archived(away=False)]
        with pytest.raises(NotFound):
            await set_archived(journal, "nobody", away=True)


async def test_a_session_that_is_open_elsewhere_is_asked_to_put_itself_away(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as owner, journal_in(tmp_path) as other:
        lease, records = await owner.create("one", [opened()])
        await set_archived(other, "one", away=True)
        assert await owner.read("one") == records
        (waiting,) = await owner.pending_commands(lease)
        assert waiting.command == Archive(away=True)


async def test_what_was_put_away_is_not_gone_on_with_by_itself(tmp_path: Path) -> None:
    clock = HandClock()
    async with journal_in(tmp_path, clock) as journal:
        await titled(journal, "one")
        clock.time += 5
        await titled(journal, "two")
        await set_archived(journal, "two", away=True)
        assert await newest(journal) == "one"


async def test_titles_given_in_one_commit_must_differ_too(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        with pytest.raises(UsageError):
            await journal.create("one", [opened(), TitleChanged(title=" spaced ")])
        with pytest.raises(NotFound):
            await journal.read("one")
        lease, _ = await journal.create(
            "one", [opened(), TitleChanged(title="A"), TitleChanged(title="B")]
        )
        await journal.create("two", [opened(), TitleChanged(title="A")])
        with pytest.raises(UsageError):
            await journal.append(lease, [TitleChanged(title="A")])


async def test_the_next_free_title(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        assert await free_title(journal, "Fresh") == "Fresh"
        assert await free_title(journal, "Plan") == "Plan #11"
        assert await free_title(journal, "Plan #2") == "Plan #11"
        assert await free_title(journal, "Plan #3") == "Plan #3"
        assert await free_title(journal, "Garden party") == "Garden party #2"
        await titled(journal, "long", "y" * 100)
        assert await free_title(journal, "y" * 100) == "y" * 97 + " #2"


async def test_a_fork_shares_records_and_goes_its_own_way(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, one = await journal.create(
            "one", [opened(), TitleChanged(title="Plan"), *exchange(1, 3)]
        )
        one += await journal.append(lease, [ModelSwitched(model="big-1", provider="other")])
        one += await journal.append(lease, exchange(2, 14))
        copy = await fork(journal, "one", at=13)
        own = await journal.read(copy, after=13)
        opening = own[0].event
        assert isinstance(opening, SessionOpened)
        assert (opening.model, opening.parent, opening.parent_n) == ("big-1", "one", 13)
        assert own[1].event == TitleChanged(title="Plan #2")
        assert await journal.read(copy) == (*one[:13], *own)
        taken = await journal.acquire(copy)
        (record,) = await journal.append(taken, [said("Elsewhere")])
        assert record.n == 16
        assert await journal.read("one") == one
        assert await verify(journal) == ()


async def test_a_fork_of_the_whole_and_its_lineage(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        _, records = await journal.create("one", [opened(), *exchange(1, 2)])
        two = await fork(journal, "one", title="Mine")
        three = await fork(journal, two)
        early = await fork(journal, three, at=2)
        assert await find(journal, "Mine") == early
        assert await find(journal, "Mine #2") == three
        assert (await journal.read(three))[: len(records)] == records
        assert [record.n for record in await journal.read(early)][:3] == [1, 2, 3]
        assert await lineage(journal, "one") == Lineage(ancestors=(), children=(two,))
        assert await lineage(journal, three) == Lineage(ancestors=("one", two), children=(early,))
        for at in (0, len(records) + 1):
            with pytest.raises(UsageError):
                await fork(journal, "one", at=at)
        with pytest.raises(NotFound):
            await fork(journal, "nobody")


async def test_a_fresh_fork_shows_what_it_has_inherited(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        told = MessageReceived(message=user_says("A process ended.", origin="hermes"))
        await journal.create("one", [opened(), told, *exchange(1, 3), *exchange(2, 13)])
        seen = []
        two = await fork(journal, "one", at=12)
        three = await fork(journal, two)
        for session_id in ("one", two, three, await fork(journal, three, at=3)):
            info = await session_info(journal, session_id)
            assert info is not None
            seen.append((info.preview, info.message_count))
        assert seen == [("Question 1?", count) for count in (7, 4, 4, 2)]
        before = await fork(journal, "one", at=2)
        info = await session_info(journal, before)
        assert info is not None
        assert (info.preview, info.message_count) == ("", 1)


async def test_a_fork_that_was_spoken_in_shows_what_sets_it_apart(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.create("one", [opened(), *exchange(1, 2)])
        two = await fork(journal, "one")
        lease = await journal.acquire(two)
        (first, second) = await journal.append(lease, [said("Another way"), said("Or not")])
        await journal.append(lease, [Withdrawn(n=second.n)])
        info = await session_info(journal, two)
        assert info is not None
        assert (info.preview, info.message_count) == ("Another way", 4)
        three = await session_info(journal, await fork(journal, two, at=first.n))
        assert three is not None
        assert (three.preview, three.message_count) == ("Question 1?", 4)
