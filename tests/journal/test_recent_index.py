"""The session list reads an index, in new journals and in those of earlier versions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hermes.journal.listing import SessionFilter, list_sessions, select
from tests.journal.samples import journal_in, opened, said


async def test_a_short_list_does_not_sort_all_sessions(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        for number in range(3):
            lease, _ = await journal.create(f"s{number}", [opened(), said(f"hello {number}")])
            await journal.release(lease)
        plans: list[str] = []

        def trace(db: sqlite3.Connection) -> None:
            queries: list[str] = []
            db.set_trace_callback(queries.append)
            select(db, SessionFilter(), limit=2)
            db.set_trace_callback(None)
            plans.extend(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {queries[0]}"))

        await journal.reading(trace)
    assert "SCAN m USING INDEX summaries_recent" in plans
    assert not any("TEMP B-TREE" in plan for plan in plans)


async def test_an_earlier_journal_gets_the_index_and_keeps_its_tables(tmp_path: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease, _ = await journal.create("s1", [opened(), said("hello")])
        await journal.release(lease)
    db = sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)
    db.execute("DROP INDEX summaries_recent")
    # Only a table that is not rebuilt keeps this title.
    db.execute("UPDATE summaries SET title = 'kept'")
    db.close()
    async with journal_in(tmp_path) as journal:
        (info,) = await list_sessions(journal)
    assert info.title == "kept"
    db = sqlite3.connect(tmp_path / "hermes.db")
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")]
    db.close()
    assert "summaries_recent" in names
