"""Out and in again: exports, plain chat lines, and imports that add nothing twice."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.core.errors import NotFound, SessionBusy, UsageError
from hermes.core.events import (
    MessageReceived,
    Record,
    ReplyAdded,
    SessionEnded,
    TitleChanged,
)
from hermes.core.messages import ToolMessage
from hermes.core.transcript import fold
from hermes.journal.export import all_ids, export_lines, export_markdown
from hermes.journal.import_ import Imported, import_file, import_lines
from hermes.journal.journal import SqliteJournal
from hermes.journal.listing import list_sessions, read_spending, session_info
from hermes.journal.sessions import fork, lineage
from hermes.journal.verify import verify
from tests.journal.samples import BEGINNING, exchange, journal_in, opened, replied, said


async def exported(journal: SqliteJournal, *ids: str) -> list[bytes]:
    wanted = ids or await all_ids(journal)
    return [line async for line in export_lines(journal, wanted)]


async def fill(journal: SqliteJournal) -> str:
    lease, _ = await journal.create("one", [opened(), TitleChanged(title="Plan"), *exchange(1, 3)])
    await journal.append(lease, exchange(2, 13), turn_id="turn_2")
    await journal.create("two", [opened("telegram"), said('tab\t "quotes" \x00 漢'), replied("ok")])
    return await fork(journal, "one", at=7)


async def everything(journal: SqliteJournal) -> list[object]:
    hashes = "SELECT session, n, hash FROM events ORDER BY session, n"
    return [
        await list_sessions(journal),
        await read_spending(journal),
        [await journal.read(id) for id in await all_ids(journal)],
        await journal.reading(lambda db: db.execute(hashes).fetchall()),
    ]


async def test_an_export_taken_in_elsewhere_is_equal(tmp_path: Path) -> None:
    async with journal_in(tmp_path / "a") as journal:
        await fill(journal)
        lines = await exported(journal)
        before = await everything(journal)
    async with journal_in(tmp_path / "b") as journal:
        done = await import_lines(journal, lines)
        assert done == Imported(sessions=3, messages=2 * 4 + 2 + 2)
        assert await everything(journal) == before
        assert await exported(journal) == lines
        assert await verify(journal) == ()
        assert await import_lines(journal, lines) == Imported(skipped=3)
        assert await everything(journal) == before


async def test_a_line_has_all_columns_messages_and_events(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        (line,) = await exported(journal, "one")
    data = json.loads(line)
    assert line.count(b"\n") == 1
    assert {key: data[key] for key in ("id", "title", "source", "parent", "ended_at")} == {
        "id": "one",
        "title": "Plan",
        "source": "cli",
        "parent": "",
        "ended_at": None,
    }
    assert [(said["role"], said["text"]) for said in data["messages"]] == [
        ("user", "Question 1?"),
        ("assistant", ""),
        ("tool", "line one"),
        ("assistant", "Answer 1."),
        ("user", "Question 2?"),
        ("assistant", ""),
        ("tool", "line one"),
        ("assistant", "Answer 2."),
    ]
    assert data["messages"][1]["calls"] == ["read_file"]
    assert [event["n"] for event in data["events"]] == list(range(1, 23))
    assert data["events"][1]["body"] == {"type": "titled", "title": "Plan"}


async def test_a_fork_without_its_parent_stands_alone(tmp_path: Path) -> None:
    async with journal_in(tmp_path / "a") as journal:
        copy = await fill(journal)
        lines = await exported(journal, copy)
        events = [record.event for record in await journal.read(copy)]
    async with journal_in(tmp_path / "b") as journal:
        await import_lines(journal, lines)
        assert [record.event for record in await journal.read(copy)] == events
        assert (await lineage(journal, copy)).ancestors == ()
        assert await verify(journal) == ()


async def test_a_fork_joins_only_the_parent_it_came_from(tmp_path: Path) -> None:
    async with journal_in(tmp_path / "a") as journal:
        copy = await fill(journal)
        lines = await exported(journal, copy)
        events = [record.event for record in await journal.read(copy)]
    async with journal_in(tmp_path / "b") as journal:
        await journal.create("one", [opened(), *(said(f"Something else {n}") for n in range(9))])
        await import_lines(journal, lines)
        assert [record.event for record in await journal.read(copy)] == events


async def test_a_title_in_use_gets_a_number(tmp_path: Path) -> None:
    async with journal_in(tmp_path / "a") as journal:
        await fill(journal)
        lines = await exported(journal, "one")
    async with journal_in(tmp_path / "b") as journal:
        await journal.create("mine", [opened(), TitleChanged(title="Plan")])
        await import_lines(journal, lines)
        info = await session_info(journal, "one")
        assert info is not None
        assert info.title == "Plan #2"


async def test_words_can_be_redacted(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await journal.create(
            "one", [opened(cwd="/home/zelda"), said("I am zelda"), replied("zelda")]
        )

        def hide(text: str) -> str:
            return text.replace("zelda", "[name]")

        (line,) = [line async for line in export_lines(journal, ["one"], redact=hide)]
        assert b"zelda" not in line
        assert json.loads(line)["messages"][0]["text"] == "I am [name]"
        page = await export_markdown(journal, "one", redact=hide)
        assert "zelda" not in page
        with pytest.raises(NotFound):
            await exported(journal, "nobody")


async def test_a_page_for_people(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await fill(journal)
        page = await export_markdown(journal, "one")
    assert page.startswith("# Plan\n\n- session: one\n- source: cli\n- model: small-1 (acme)\n")
    assert "## user · 2025-10-09 08:53:20 UTC\n\nQuestion 1?\n" in page
    assert "*calls read_file*" in page
    assert "## tool read_file ·" in page


def chat(*rows: tuple[str, float | str, str, str]) -> list[bytes]:
    names = ("session", "at", "role", "text")
    return [json.dumps(dict(zip(names, row, strict=True))).encode() + b"\n" for row in rows]


CHAT = chat(
    ("trip", 100, "user", "Where to?"),
    ("trip", 101, "assistant", "To the sea."),
    ("cook", 150.5, "user", "What is for dinner?"),
    ("trip", 102, "user", "When?"),
    ("trip", 103, "user", "And how?"),
    ("trip", 104, "assistant", "In May, by train."),
    ("cook", 160, "assistant", "Soup."),
    ("trip", 105, "user", "Fine."),
)


async def test_chat_lines_become_a_conversation(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        assert await import_lines(journal, CHAT) == Imported(sessions=2, messages=8)
        records = await journal.read("trip")
        kinds = [type(record.event) for record in records[1:]]
        heard, said = MessageReceived, ReplyAdded
        assert kinds == [heard, said, heard, heard, said, heard, SessionEnded]
        spoken = [m.text for m in fold(records).messages if not isinstance(m, ToolMessage)]
        assert spoken == [
            *("Where to?", "To the sea.", "When?", "And how?", "In May, by train.", "Fine."),
        ]
        assert [r.at for r in records[1:4]] == [100.0, 101.0, 102.0]
        info = await session_info(journal, "trip")
        assert info is not None
        assert (info.source, info.message_count, info.preview) == ("import", 6, "Where to?")
        assert (info.started_at, info.last_at, info.end_reason) == (100.0, 105.0, "imported")
        assert await verify(journal) == ()


async def test_chat_lines_are_taken_in_once(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        await import_lines(journal, CHAT)
        before = await everything(journal)
        assert await import_lines(journal, CHAT) == Imported(skipped=8)
        assert await everything(journal) == before
        more = chat(("trip", 106, "assistant", "See you there."))
        assert await import_lines(journal, CHAT + more) == Imported(messages=1, skipped=8)
        assert await import_lines(journal, CHAT + more) == Imported(skipped=9)
        assert spoken(await journal.read("trip"))[-2:] == ["Fine.", "See you there."]


def spoken(records: Sequence[Record]) -> list[str]:
    return [
        record.event.message.text
        for record in records
        if isinstance(record.event, MessageReceived | ReplyAdded)
    ]


async def test_an_import_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        with pytest.raises(UsageError, match="Line 9"):
            await import_lines(journal, [*CHAT, b"{broken\n", *CHAT])
        await import_lines(journal, CHAT)
        texts = spoken(await journal.read("trip"))
        assert texts == [
            "Where to?",
            "To the sea.",
            "When?",
            "And how?",
            "In May, by train.",
            "Fine.",
        ]


async def test_the_same_words_at_the_same_time_are_still_two(tmp_path: Path) -> None:
    twice = chat(*[("a", 1, "user", "ok")] * 2, *[("a", 1, "assistant", "ok")] * 2)
    async with journal_in(tmp_path) as journal:
        assert await import_lines(journal, twice) == Imported(sessions=1, messages=4)
        assert await import_lines(journal, twice) == Imported(skipped=4)


async def test_a_session_of_ours_with_the_same_name_is_left_alone(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        _, mine = await journal.create("trip", [opened()])
        for _ in range(2):
            await import_lines(journal, CHAT)
        assert await journal.read("trip") == mine
        ids = await all_ids(journal)
        assert len(ids) == 3
        assert sum(id.startswith("import_") for id in ids) == 1


async def test_names_that_are_no_ids_get_one_of_their_own(tmp_path: Path) -> None:
    lines = chat(("Müller & Söhne/../x", "2026-05-01T10:00:00Z", "user", "Guten Tag"))
    async with journal_in(tmp_path) as journal:
        await import_lines(journal, lines)
        await import_lines(journal, lines)
        (id,) = await all_ids(journal)
        assert id.startswith("import_")
        assert (await journal.read(id))[0].at == 1_777_629_600.0


async def test_words_of_others_are_not_the_users(tmp_path: Path) -> None:
    lines = chat(("a", 1, "system", "Rules"), ("a", 2, "tool", "Output"), ("a", 3, "user", "Hi"))
    async with journal_in(tmp_path) as journal:
        await import_lines(journal, lines)
        (line,) = await exported(journal, "a")
        roles = [message["role"] for message in json.loads(line)["messages"]]
        assert roles == ["system", "tool", "user"]
        info = await session_info(journal, "a")
        assert info is not None
        assert info.preview == "Hi"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"session":"a","at":1,"role":"robot","text":"x"}', "role"),
        (b'{"session":"a","at":1,"role":"user"}', "text"),
        (b'{"id":"x","events":[]}', "Line 1"),
        (b'{"format":"hermes-session-1","id":"x","events":[{"n":1}]}', "events"),
        (b"[]", "Line 1"),
    ],
)
async def test_a_line_that_cannot_be_taken_in_is_named(
    tmp_path: Path, line: bytes, why: str
) -> None:
    async with journal_in(tmp_path) as journal:
        with pytest.raises(UsageError, match=why):
            await import_lines(journal, [line])
        assert await all_ids(journal) == ()


async def test_events_of_a_newer_hermes_are_not_taken_in(tmp_path: Path) -> None:
    async with journal_in(tmp_path / "a") as journal:
        await fill(journal)
        (line,) = await exported(journal, "two")
    async with journal_in(tmp_path / "b") as journal:
        with pytest.raises(UsageError, match="newer Hermes"):
            await import_lines(journal, [line.replace(b'"version":1', b'"version":2')])
        with pytest.raises(UsageError, match="event 2"):
            await import_lines(journal, [line.replace(b'"parts":[', b'"parts":[7,')])


async def test_a_session_somebody_is_in_takes_no_lines(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal, journal_in(tmp_path) as other:
        await import_lines(journal, CHAT)
        await other.acquire("trip")
        with pytest.raises(SessionBusy):
            await import_lines(journal, CHAT)


async def test_compressed_files_are_read_too(tmp_path: Path) -> None:
    plain, packed = tmp_path / "chat.jsonl", tmp_path / "chat.jsonl.gz"
    plain.write_bytes(b"\n".join([*CHAT[:2], b"", *CHAT[2:]]))
    packed.write_bytes(gzip.compress(b"".join(CHAT)))
    async with journal_in(tmp_path) as journal:
        assert await import_file(journal, plain) == Imported(sessions=2, messages=8)
        assert await import_file(journal, packed) == Imported(skipped=8)


async def test_a_long_import_keeps_its_order(tmp_path: Path) -> None:
    def lines(count: int) -> Sequence[bytes]:
        roles = ("user", "assistant")
        return chat(
            *((f"s{n % 7}", BEGINNING + n, roles[n // 7 % 2], f"{n}") for n in range(count))
        )

    async with journal_in(tmp_path) as journal:
        assert await import_lines(journal, lines(2_500)) == Imported(sessions=7, messages=2_500)
        for session in range(7):
            records = await journal.read(f"s{session}")
            assert spoken(records) == [f"{n}" for n in range(session, 2_500, 7)]
        assert await import_lines(journal, lines(2_500)) == Imported(skipped=2_500)
        assert await verify(journal) == ()


@pytest.mark.parametrize("id", ["../../x", "a/b", "", ".hidden", "x" * 200])
async def test_an_id_that_leads_somewhere_is_refused(tmp_path: Path, id: str) -> None:
    line = json.dumps({"id": id, "format": "hermes-session-1", "messages": [], "events": []})
    async with journal_in(tmp_path) as journal:
        with pytest.raises(UsageError, match="cannot be the id"):
            await import_lines(journal, [line.encode()])
