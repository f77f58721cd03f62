"""Words leave the journal for good, and the chain says so."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.core.errors import SessionBusy
from hermes.core.events import Erased
from hermes.journal.connections import connect
from hermes.journal.database import PAGE_BYTES, PAGES, Checkpointer
from hermes.journal.erasure import Mentions, erase, find_affected
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import session_info
from hermes.journal.sessions import fork
from hermes.journal.upkeep import vacuum
from hermes.journal.verify import verify
from tests.journal.samples import exchange, journal_in, opened, replied, said

SECRET = "The code is 4711"
MARK = "[gone]"


class Eraser:
    def may_contain(self, raw: str) -> bool:
        return "4711" in raw

    def remove_phrases(self, text: str, *, near: bool = False) -> str:
        return MARK if near and "code" in text else text.replace(SECRET, MARK)


async def journal_with(journal: SqliteJournal, id: str = "one", *, system: str = "") -> None:
    events = [opened(system=system), said(SECRET), *exchange(1, 3), replied(f"So: {SECRET}.")]
    lease, _ = await journal.create(id, events)
    await journal.release(lease)


def raw(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("hermes.db*"))


async def test_nothing_of_it_is_left_and_the_chain_is_whole(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal_with(journal)
        await journal_with(journal, "two", system=f"You know: {SECRET}")
        before = await session_info(journal, "one")
        done = await erase(journal, Eraser(), by="ann")
        assert dict(done.sessions) == {"one": (2, 13), "two": (1, 2, 13)}
        assert await verify(journal) == ()
        after = await session_info(journal, "one")
        assert before is not None and after is not None
        assert (after.preview, after.usage, after.last_at) == (MARK, before.usage, before.last_at)
        records = await journal.read("one")
        assert records[-1].event == Erased(records=(2, 13), by="ann")
        lease = await journal.acquire("one")
        await journal.append(lease, [said("On we go")])
        assert await verify(journal) == ()
    assert b"4711" not in raw(tmp_path)


async def test_an_edit_after_an_erasure_still_shows(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal_with(journal)
        await erase(journal, Eraser())
        work = "UPDATE log SET rest = replace(rest, 'So', 'No') WHERE n = 13"
        await journal.writing(lambda tx: len(tx.db.execute(work).fetchall()))
        (problem,) = await verify(journal)
        assert (problem.n, problem.why) == (13, "it was changed after it was written")


async def test_a_session_in_use_stops_all_of_it(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal, journal_in(tmp_path) as other:
        await journal_with(journal)
        await journal_with(journal, "two")
        await other.acquire("two")
        with pytest.raises(SessionBusy, match="nothing was changed"):
            await erase(journal, Eraser())
        assert set(await find_affected(journal, Eraser())) == {"one", "two"}


async def test_a_fork_keeps_what_it_shares(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal_with(journal)
        child = await fork(journal, "one", at=5)
        await erase(journal, Eraser())
        assert await verify(journal) == ()
        texts = [getattr(r.event, "message", None) for r in await journal.read(child)]
        assert any(message is not None and message.text == MARK for message in texts)


async def test_other_words_go_only_where_it_was_said(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("one", [opened(), said("My code is new"), said("a code")])
        await journal.release(lease)
        near = {"one": Mentions(records=frozenset({2}))}
        done = await erase(journal, Eraser(), near=near)
        assert dict(done.sessions) == {"one": (2,)}


async def test_what_waits_in_the_inbox_is_cleaned_too(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal_with(journal)
        await journal.post("one", Say(text=f"Also {SECRET}"))
        await erase(journal, Eraser())
        (waiting,) = await journal.pending_commands(await journal.acquire("one"))
        assert waiting.command == Say(text=f"Also {MARK}")
    assert b"4711" not in raw(tmp_path)


async def test_nothing_to_forget_changes_nothing(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, records = await journal.create("one", [opened(), said("hello")])
        await journal.release(lease)
        assert dict((await erase(journal, Eraser())).sessions) == {}
        assert await journal.read("one") == records


async def test_pages_that_somebody_reads_are_told_and_go_at_the_next_opening(
    tmp_path: Path,
) -> None:
    async with journal_in(tmp_path) as journal:
        await journal_with(journal)
        with closing(connect(journal.path, mode="rw")) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM log").fetchone() == (13,)
            done = await erase(journal, Eraser(), patience_seconds=0)
            assert not done.is_wiped and b"4711" in raw(tmp_path)
            async with journal_in(tmp_path) as other:
                await journal_with(other, "two", system="Somebody still reads")
            assert b"4711" in raw(tmp_path)
            reader.execute("COMMIT")
            async with journal_in(tmp_path) as other:
                await other.create("three", [opened()])
            assert b"So: [gone]." in raw(tmp_path)
            assert (await erase(journal, Eraser(), patience_seconds=0)).is_wiped


async def test_the_log_is_emptied_at_once_while_others_copy_it(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal_with(journal)
        copier = Checkpointer(journal.path)
        done = asyncio.Event()

        async def copy() -> None:
            while not done.is_set():
                copier.count(rows_bytes=PAGES * PAGE_BYTES, sessions=0)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            group.create_task(copy())
            wiped = [await vacuum(journal, patience_seconds=0) for _ in range(40)]
            done.set()
        copier.close()
        assert all(wiped)
