from __future__ import annotations

from pathlib import Path

from hermes.core.events import MessageReceived, SessionEnded, SessionOpened
from hermes.core.messages import user_says
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.journal.reading import FeedItem, events_after, events_since, newest_cursor

OPENED = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="")


def heard(text: str) -> MessageReceived:
    return MessageReceived(message=user_says(text))


def words(found: list[FeedItem]) -> list[tuple[str, str]]:
    return [
        (each.record.session_id, each.record.event.message.text)
        for each in found
        if isinstance(each.record.event, MessageReceived)
    ]


async def test_events_of_all_sessions_come_in_their_order(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "hermes.db", World()) as journal:
        one, _ = await journal.create("one", (OPENED, heard("a")))
        two, _ = await journal.create("two", (OPENED, heard("b")))
        await journal.append(one, (heard("c"), SessionEnded(reason="over")))
        kinds = ("message_received",)
        every = await journal.reading(lambda db: events_after(db, 0, kinds))
        assert words(every) == [("one", "a"), ("two", "b"), ("one", "c")]
        first = await journal.reading(lambda db: events_after(db, 0, kinds, limit=1))
        rest = await journal.reading(lambda db: events_after(db, first[0].cursor, kinds))
        assert words(rest) == [("two", "b"), ("one", "c")]
        own = await journal.reading(lambda db: events_after(db, 0, kinds, session_id="two"))
        assert words(own) == [("two", "b")]
        newest = await journal.reading(newest_cursor)
        assert await journal.reading(lambda db: events_after(db, newest, kinds)) == []
        await journal.append(two, (heard("d"),))
        later = await journal.reading(lambda db: events_after(db, newest, kinds))
        assert words(later) == [("two", "d")]


async def test_the_newest_events_are_found_from_a_moment_on(tmp_path: Path) -> None:
    async with SqliteJournal(tmp_path / "hermes.db", World()) as journal:
        await journal.create("one", (OPENED, heard("a"), heard("b"), heard("c")))
        kinds = ("message_received",)
        found = await journal.reading(lambda db: events_since(db, 0, kinds, limit=2))
        assert words(found) == [("one", "b"), ("one", "c")]
        assert await journal.reading(lambda db: events_since(db, 1e12, kinds)) == []
