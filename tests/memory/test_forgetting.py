"""What was forgotten is in nobody's memory and in no table, and what is left is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import World
from hermes.memory.entries import OWNER, ChangeSource, Operation
from hermes.memory.forgetting import forget, plan_forget, sweep
from tests.memory.life import assert_nowhere

SECRET = "The code of the door is 4711"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"


def app_in(home: Path) -> App:
    return App(load(Home(home), flags={}, env={}), env={}, world=World())


async def remember(app: App, scope: str, text: str) -> None:
    wish = (Operation(action="add", content=text),)
    await app.memory.of(scope).change(
        "memory", wish, source=ChangeSource(kind="person", person=scope)
    )


def remove_phrases(text: str) -> str:
    return text.replace(SECRET, "[gone]")


async def test_what_others_were_told_goes_too(home: Path) -> None:
    async with app_in(home) as app:
        await remember(app, OWNER, SECRET)
        await remember(app, "person:eve", SECRET)
        await remember(app, "person:eve", "Eve likes tea")
        assert (
            await forget(app.memory, app.archive, await plan_forget(app.memory, "m1"))
        ).left == ()
        assert [entry.text for entry in await app.memory.of("person:eve").entries()] == [
            "Eve likes tea"
        ]
        assert_nowhere(home, SECRET)


async def test_words_that_were_only_recalled_are_forgotten(home: Path) -> None:
    async with app_in(home) as app:
        await remember(app, OWNER, "Something else")
        await app.memory.of().record_recall("s1", 3, b"said", f"It says: {SECRET}.")
        await forget(app.memory, app.archive, await plan_forget(app.memory, SECRET))
        assert await app.memory.of().recalls_of("s1") == {3: (b"said", "It says: [forgotten].")}
        assert_nowhere(home, SECRET)


async def test_a_reader_of_memory_is_named(home: Path) -> None:
    async with app_in(home) as app:
        await remember(app, OWNER, SECRET)
        with closing(sqlite3.connect(home / "memories" / "ledger.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM changes").fetchall()
            (left,) = (
                await forget(
                    app.memory, app.archive, await plan_forget(app.memory, "m1"), patience_seconds=0
                )
            ).left
        assert left.startswith(f"{home}/memories/ledger.db may still have it on old pages")
        assert (
            await forget(app.memory, app.archive, await plan_forget(app.memory, SECRET))
        ).left == ()
        assert_nowhere(home, SECRET)


def test_tables_of_any_database_are_cleaned(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "api.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE answers(id TEXT PRIMARY KEY, data BLOB, at REAL) WITHOUT ROWID")
        db.execute('CREATE TABLE "odd names"("a b" TEXT, n INTEGER UNIQUE)')
        body = f'{{"text": "{SECRET}"}}'.encode()
        rows = [("one", body, 1.0), (SECRET, b"x", 2.0), ("[gone]", b"taken", 3.0)]
        db.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)
        db.execute('INSERT INTO "odd names" VALUES (?, 1)', (SECRET,))
        db.commit()
        assert sweep(tmp_path, remove_phrases) == ([str(tmp_path / "api.db")], [])
        assert db.execute("SELECT * FROM answers ORDER BY at").fetchall() == [
            ("one", b'{"text": "[gone]"}', 1.0),
            ("[gone]", b"taken", 3.0),
        ]
        assert db.execute('SELECT * FROM "odd names"').fetchall() == [("[gone]", 1)]
        assert_nowhere(tmp_path, SECRET)
        assert sweep(tmp_path, remove_phrases) == ([], [])


def test_foreign_and_indexed_databases_are_told_of(tmp_path: Path) -> None:
    foreign, indexed = tmp_path / "state.db", tmp_path / "plugins" / "own.db"
    indexed.parent.mkdir()
    (tmp_path / "note.db").write_text(f"no database: {SECRET}")
    for path, kind in (
        (foreign, "TABLE said(text)"),
        (indexed, "VIRTUAL TABLE said USING fts5(t)"),
    ):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"CREATE {kind}")
            db.execute("INSERT INTO said VALUES (?)", (SECRET,))
    before = foreign.read_bytes()
    changed, left = sweep(tmp_path, remove_phrases)
    assert sorted(changed) == [str(tmp_path / "note.db"), str(indexed)]
    assert f"{foreign} also contains it" in left
    assert any("a virtual table, said" in each for each in left)
    assert foreign.read_bytes() == before
    assert (tmp_path / "note.db").read_text() == "no database: [gone]"
