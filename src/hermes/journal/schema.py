"""The tables of `hermes.db`: created, checked and migrated when the file is opened, without a
scan."""

from __future__ import annotations

import sqlite3

from hermes.core.errors import JournalError
from hermes.journal.body_templates import TEMPLATES

FORMAT = 3
PROJECTIONS = 4

TRUTH = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE shapes(
    shape INTEGER PRIMARY KEY, kind TEXT NOT NULL, version INTEGER NOT NULL,
    head TEXT NOT NULL, tail TEXT NOT NULL);
CREATE TABLE sessions(
    session INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    parent INTEGER, parent_n INTEGER NOT NULL DEFAULT 0);
CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE TABLE log(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL, turn_id TEXT NOT NULL,
    shape INTEGER NOT NULL, rest TEXT NOT NULL, at REAL NOT NULL, hash BLOB NOT NULL);
CREATE UNIQUE INDEX log_place ON log(session, n);
CREATE VIEW events AS
    SELECT id, session, n, turn_id,
        (SELECT kind FROM shapes WHERE shape = log.shape) AS kind,
        (SELECT version FROM shapes WHERE shape = log.shape) AS version,
        (SELECT head || log.rest || tail FROM shapes WHERE shape = log.shape) AS body,
        at, hash
    FROM log;
CREATE TABLE owners(owner TEXT PRIMARY KEY, beat REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE leases(session INTEGER PRIMARY KEY, owner TEXT NOT NULL, fence INTEGER NOT NULL);
CREATE TABLE inbox(
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, key TEXT NOT NULL,
    body TEXT NOT NULL, at REAL NOT NULL, taken INTEGER NOT NULL DEFAULT 0);
CREATE INDEX inbox_waiting ON inbox(session, id) WHERE taken = 0;
CREATE UNIQUE INDEX inbox_key ON inbox(session, key) WHERE key <> '';
CREATE TABLE quarantine(
    event INTEGER PRIMARY KEY, session INTEGER NOT NULL, n INTEGER NOT NULL,
    why TEXT NOT NULL, found_at REAL NOT NULL);
CREATE INDEX quarantine_session ON quarantine(session);
CREATE TABLE removed(session INTEGER PRIMARY KEY, id TEXT NOT NULL, at REAL NOT NULL);
"""

# The spending of deleted sessions, which can no longer be derived and still counts.
CARRIED = """
CREATE TABLE carried(
    id TEXT NOT NULL, principal TEXT NOT NULL, job TEXT NOT NULL, day INTEGER NOT NULL,
    model TEXT NOT NULL, provider TEXT NOT NULL, cause TEXT NOT NULL, calls INTEGER NOT NULL,
    replies INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, assumed_calls INTEGER NOT NULL,
    assumed_input INTEGER NOT NULL, assumed_output INTEGER NOT NULL,
    assumed_cost INTEGER NOT NULL, assumed_unpriced INTEGER NOT NULL);
CREATE INDEX carried_id ON carried(id);
"""

# Work that a gateway and a scheduler owe, also after a crash (`deliveries`, `due_times`).
OWED = """
CREATE TABLE received(
    id INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT NOT NULL, key TEXT NOT NULL,
    session_key TEXT NOT NULL, body TEXT NOT NULL, at REAL NOT NULL, state TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '', changed_at REAL NOT NULL, note TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX received_key ON received(platform, key);
CREATE INDEX received_open ON received(platform, id) WHERE state <> 'finished';
CREATE TABLE posts(
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, platform TEXT NOT NULL,
    address TEXT NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL,
    message_id TEXT NOT NULL DEFAULT '', session_id TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0, at REAL NOT NULL, changed_at REAL NOT NULL,
    note TEXT NOT NULL DEFAULT '');
CREATE INDEX posts_open ON posts(platform, id) WHERE state NOT IN ('confirmed', 'abandoned');
CREATE TABLE routes(
    key TEXT PRIMARY KEY, session_id TEXT NOT NULL, body TEXT NOT NULL,
    used_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE due_times(
    id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, due_at REAL NOT NULL,
    owner TEXT NOT NULL, state TEXT NOT NULL, session_id TEXT NOT NULL DEFAULT '',
    claimed_at REAL NOT NULL, started_at REAL, ended_at REAL,
    error TEXT NOT NULL DEFAULT '', delivery TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX due_times_slot ON due_times(job, due_at);
CREATE INDEX due_times_open ON due_times(id) WHERE ended_at IS NULL;
"""

DERIVED = """
CREATE TABLE summaries(
    session INTEGER PRIMARY KEY, last_n INTEGER NOT NULL, title TEXT NOT NULL,
    source TEXT NOT NULL, cwd TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    principal TEXT NOT NULL, preview TEXT NOT NULL, started_at REAL NOT NULL,
    last_at REAL NOT NULL, ended_at REAL, end_reason TEXT NOT NULL,
    message_count INTEGER NOT NULL, tool_call_count INTEGER NOT NULL,
    api_calls INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL,
    cost REAL, call_turn TEXT NOT NULL, call_cause TEXT NOT NULL, call_booked INTEGER NOT NULL,
    job TEXT NOT NULL, task TEXT NOT NULL, inherited INTEGER NOT NULL, archived INTEGER NOT NULL);
CREATE INDEX summaries_title ON summaries(title) WHERE title <> '';
CREATE TABLE usage(
    session INTEGER NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    cause TEXT NOT NULL, calls INTEGER NOT NULL, replies INTEGER NOT NULL,
    input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY(session, day, model, provider, cause)) WITHOUT ROWID;
CREATE INDEX usage_day ON usage(day);
CREATE TABLE assumed(
    session INTEGER NOT NULL, call TEXT NOT NULL, day INTEGER NOT NULL, turn TEXT NOT NULL,
    model TEXT NOT NULL, provider TEXT NOT NULL, cause TEXT NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, cost INTEGER NOT NULL, priced INTEGER NOT NULL,
    open INTEGER NOT NULL, PRIMARY KEY(session, call)) WITHOUT ROWID;
CREATE TABLE raised(
    session INTEGER NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL, cost INTEGER NOT NULL,
    tokens INTEGER NOT NULL, PRIMARY KEY(session, scope, key)) WITHOUT ROWID;
CREATE INDEX raised_key ON raised(scope, key);
CREATE TABLE tasks(
    task TEXT NOT NULL, session INTEGER NOT NULL, tokens INTEGER NOT NULL, cost INTEGER NOT NULL,
    PRIMARY KEY(task, session)) WITHOUT ROWID;
CREATE TABLE daily(
    day INTEGER NOT NULL, principal TEXT NOT NULL, tokens INTEGER NOT NULL,
    cost INTEGER NOT NULL, PRIMARY KEY(day, principal)) WITHOUT ROWID;
CREATE TABLE jobs(
    job TEXT PRIMARY KEY, tokens INTEGER NOT NULL, cost INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE message_keys(
    session INTEGER NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(session, key)) WITHOUT ROWID;
"""

_GOAL = 1 + next(n for n, each in enumerate(TEMPLATES) if each.kind == "goal_changed")
# Journals of earlier versions get these without a rebuild of their tables. Few sessions have goals,
# so their index has few entries.
LATER_INDEXES = f"""
CREATE INDEX IF NOT EXISTS summaries_recent ON summaries(last_at, session);
CREATE INDEX IF NOT EXISTS log_goals ON log(session, n) WHERE shape = {_GOAL};
"""

SESSION_TABLES = ("summaries", "usage", "message_keys", "assumed", "raised", "tasks")
DERIVED_TABLES = (*SESSION_TABLES, "daily", "jobs")


def is_current(db: sqlite3.Connection) -> bool:
    """Whether the file can be used as it is; raises JournalError for a newer format."""
    found = format_of(db)
    if found != FORMAT or not _templates_are_valid(db) or not projections_are_whole(db):
        return False
    query = (
        "SELECT count(*) FROM sqlite_master WHERE type = 'index'"
        " AND name IN ('summaries_recent', 'log_goals')"
    )
    return bool(db.execute(query).fetchone() == (2,))


def format_of(db: sqlite3.Connection) -> int:
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found > FORMAT:
        raise JournalError(
            f"This journal has format {found}, written by a newer Hermes; this one knows "
            f"format {FORMAT}. Update Hermes, or use another home."
        )
    return found


def create(db: sqlite3.Connection) -> None:
    """Create all tables of an empty file inside the caller's transaction."""
    _run(db, TRUTH + CARRIED + OWED)
    repair_templates(db)
    create_projections(db)
    db.execute(f"PRAGMA user_version = {FORMAT}")


def migrate(db: sqlite3.Connection) -> None:
    """Migrate tables of an older format inside the caller's transaction."""
    if format_of(db) < 2:
        _run(db, CARRIED)
    if format_of(db) < 3:
        _run(db, OWED)
    db.execute(f"PRAGMA user_version = {FORMAT}")


def create_projections(db: sqlite3.Connection) -> None:
    for table in DERIVED_TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    _run(db, DERIVED + LATER_INDEXES)
    db.execute("INSERT OR REPLACE INTO meta VALUES ('projections', ?)", (PROJECTIONS,))


def create_later_indexes(db: sqlite3.Connection) -> None:
    _run(db, LATER_INDEXES)


def goal_rows(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the newest goal of every session that has one, as session id and JSON."""
    query = (
        "SELECT s.id, (SELECT head || l.rest || tail FROM shapes WHERE shape = l.shape)"
        " FROM log AS l JOIN sessions AS s USING (session)"
        f" WHERE l.shape = {_GOAL} AND l.n ="
        f" (SELECT max(n) FROM log WHERE session = l.session AND shape = {_GOAL})"
    )
    return db.execute(query).fetchall()


def projections_are_whole(db: sqlite3.Connection) -> bool:
    row = db.execute("SELECT value FROM meta WHERE name = 'projections'").fetchone()
    if row != (PROJECTIONS,):
        return False
    marks = ",".join("?" * len(DERIVED_TABLES))
    query = f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ({marks})"
    if db.execute(query, DERIVED_TABLES).fetchone() != (len(DERIVED_TABLES),):
        return False
    emptied = "SELECT EXISTS(SELECT 1 FROM sessions) > EXISTS(SELECT 1 FROM summaries)"
    return bool(db.execute(emptied).fetchone() == (0,))


def repair_templates(db: sqlite3.Connection) -> None:
    """Write the templates that are new or damaged. Those of a newer Hermes stay."""
    db.executemany(
        "INSERT OR REPLACE INTO shapes VALUES (?, ?, ?, ?, ?)",
        (
            (number, each.kind, each.version, each.head.decode(), each.tail.decode())
            for number, each in enumerate(TEMPLATES, start=1)
        ),
    )


def _templates_are_valid(db: sqlite3.Connection) -> bool:
    query = (
        "SELECT shape, CAST(kind AS BLOB), version, CAST(head AS BLOB), CAST(tail AS BLOB)"
        " FROM shapes WHERE shape <= ? ORDER BY shape"
    )
    found = db.execute(query, (len(TEMPLATES),)).fetchall()
    return found == [
        (number, each.kind.encode(), each.version, each.head, each.tail)
        for number, each in enumerate(TEMPLATES, start=1)
    ]


def _run(db: sqlite3.Connection, script: str) -> None:
    # executescript would commit the caller's transaction.
    for statement in script.split(";\n"):
        if statement.strip():
            db.execute(statement)
