"""Journals of earlier versions stay readable: `golden/` holds one of each format, as SQL text, and
what is in it, as an export. They are never written again; a new format adds files of its own, which
`scripts/make_golden_journal.py` makes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hermes.core.commands import Say
from hermes.journal.body_templates import KINDS
from hermes.journal.export import all_ids, export_lines
from hermes.journal.import_ import import_lines
from hermes.journal.listing import session_info
from hermes.journal.schema import DERIVED_TABLES, FORMAT
from hermes.journal.verify import verify
from scripts.make_golden_journal import GOLDEN, write_golden
from tests.journal.samples import journal_in, said

FORMATS = sorted(path.stem for path in GOLDEN.glob("*.sql"))
MADE_NOW = "made-now"


@pytest.fixture(params=[*FORMATS, MADE_NOW])
async def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The SQL text of a journal that now lies in the folder of the test."""
    file = GOLDEN / f"{request.param}.sql"
    if request.param == MADE_NOW:
        file = await write_golden(tmp_path, MADE_NOW)
    db = sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)
    db.executescript(file.read_text())
    db.close()
    return file


def lines_of(golden: Path) -> list[bytes]:
    return golden.with_suffix(".jsonl").read_bytes().splitlines(keepends=True)


async def test_an_old_journal_is_read_and_clean(tmp_path: Path, golden: Path) -> None:
    async with journal_in(tmp_path) as journal:
        assert await verify(journal) == ()
        ids = await all_ids(journal)
        assert [line async for line in export_lines(journal, ids)] == lines_of(golden)


async def test_an_old_journal_can_be_written(tmp_path: Path, golden: Path) -> None:
    async with journal_in(tmp_path) as journal:
        for session_id in await all_ids(journal):
            before = await session_info(journal, session_id)
            assert before is not None
            lease = await journal.acquire(session_id)
            (record,) = await journal.append(lease, [said("On we go")])
            assert record.n == before.last_n + 1
        assert await verify(journal) == ()


async def test_what_waited_in_an_old_inbox_still_waits(tmp_path: Path, golden: Path) -> None:
    async with journal_in(tmp_path) as journal:
        lease = await journal.acquire("golden-one")
        (waiting,) = await journal.pending_commands(lease)
        assert waiting.command == Say(text="Are you there?", key="m9")


async def test_derived_tables_of_an_old_journal_come_out_the_same(
    tmp_path: Path, golden: Path
) -> None:
    db = sqlite3.connect(tmp_path / "hermes.db", isolation_level=None)
    for table in DERIVED_TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    db.close()
    async with journal_in(tmp_path) as journal:
        ids = await all_ids(journal)
        assert [line async for line in export_lines(journal, ids)] == lines_of(golden)


async def test_an_old_export_is_taken_in(tmp_path: Path, golden: Path) -> None:
    async with journal_in(tmp_path / "other") as journal:
        await import_lines(journal, lines_of(golden))
        ids = await all_ids(journal)
        assert [line async for line in export_lines(journal, ids)] == lines_of(golden)
        assert await verify(journal) == ()


def test_every_kind_is_in_a_golden_journal() -> None:
    text = "".join((GOLDEN / f"{name}.jsonl").read_text() for name in FORMATS)
    assert f"format-{FORMAT}" in FORMATS
    assert [kind for kind in KINDS.values() if f'"type":"{kind}"' not in text] == []


async def test_a_new_golden_journal_has_every_kind_and_replaces_none(tmp_path: Path) -> None:
    file = await write_golden(tmp_path, MADE_NOW)
    text = file.with_suffix(".jsonl").read_text()
    assert [kind for kind in KINDS.values() if f'"type":"{kind}"' not in text] == []
    with pytest.raises(FileExistsError):
        await write_golden(tmp_path, MADE_NOW)
