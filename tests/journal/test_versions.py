"""Old bodies are brought up to date, newer ones are let be."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hermes.codec.json import DecodeError, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import JournalError
from hermes.core.events import TitleChanged
from hermes.journal.body_templates import event_of, is_newer
from hermes.journal.verify import verify
from tests.journal.samples import journal_in, opened, said


def renamed(body: JsonObject) -> JsonObject:
    return {"type": "titled", "title": body["name"]}


def shortened(body: JsonObject) -> JsonObject:
    return {**body, "title": body["title"].strip()}


def test_a_body_takes_every_step_to_the_present() -> None:
    current, upgrades = {"titled": 3}, {("titled", 1): renamed, ("titled", 2): shortened}
    for version, body in (
        (1, {"type": "titled", "name": " Plan "}),
        (2, {"type": "titled", "title": " Plan "}),
        (3, {"type": "titled", "title": "Plan"}),
    ):
        event = event_of("titled", version, encode(body), current=current, upgrades=upgrades)
        assert event == TitleChanged(title="Plan")


def test_kinds_and_versions_of_the_future_are_known_as_such() -> None:
    assert is_newer("dreamt", 1)
    assert is_newer("titled", 2)
    assert not is_newer("titled", 1)


def test_a_damaged_body_is_an_error() -> None:
    for body in (b"", b"{", b'{"type":"titled"}', b'{"type":"nothing"}', b'{"type":"titled","\xff'):
        with pytest.raises(DecodeError):
            event_of("titled", 1, body)


async def test_an_event_of_a_newer_hermes_is_skipped_and_kept(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, first = await journal.create("one", [opened(), said("a"), said("b")])
        with sqlite3.connect(tmp_path / "hermes.db") as db:
            db.execute("INSERT INTO shapes VALUES (900, 'dreamt', 1, '{\"type\":\"dreamt\"', '}')")
            db.execute("UPDATE log SET shape = 900, rest = '' WHERE n = 2")
        db.close()
        assert await journal.read("one") == (first[0], first[2])
        (record,) = await journal.append(lease, [said("c")])
        assert record.n == 4
        kinds = "SELECT kind FROM events ORDER BY n"
        found = await journal.reading(lambda db: [kind for (kind,) in db.execute(kinds)])
        assert found == ["session_opened", "dreamt", "message_received", "message_received"]
        quarantined = "SELECT count(*) FROM quarantine"
        assert await journal.reading(lambda db: db.execute(quarantined).fetchone()) == (0,)
    async with journal_in(tmp_path) as journal:
        assert len(await journal.read("one")) == 3
        # The hash was made for another body: that is all that is wrong with it.
        assert [(p.session_id, p.n) for p in await verify(journal)] == [("one", 2)]


async def test_a_journal_of_a_newer_format_is_not_touched(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.create("one", [opened()])
    db = sqlite3.connect(tmp_path / "hermes.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    async with journal_in(tmp_path) as journal:
        for attempt in (journal.read("one"), journal.acquire("one")):
            with pytest.raises(JournalError, match=r"format 99.*Update Hermes"):
                await attempt
