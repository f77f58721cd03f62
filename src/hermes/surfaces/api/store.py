"""The tables of the API server, in `api.db`."""

from __future__ import annotations

from pathlib import Path

from hermes.hosting.store import HostingStore

SCHEMA = """
CREATE TABLE IF NOT EXISTS threads (
    hash TEXT PRIMARY KEY, session_id TEXT, n INTEGER, messages INTEGER, at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS threads_at ON threads (at);
CREATE TABLE IF NOT EXISTS responses (
    id TEXT PRIMARY KEY, client TEXT, session_id TEXT, n INTEGER, messages INTEGER,
    data BLOB, created_at REAL, accessed_at REAL
);
CREATE INDEX IF NOT EXISTS responses_accessed ON responses (accessed_at);
CREATE TABLE IF NOT EXISTS conversations (
    client TEXT, name TEXT, response_id TEXT, PRIMARY KEY (client, name)
) WITHOUT ROWID;
"""
# Earlier versions stored runs without their requests, and responses in another form. A retry of a
# request from before gets the response of the same run from the journal.
MIGRATION = """
CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID;
INSERT OR IGNORE INTO pending_runs SELECT id, NULL, at FROM runs;
DROP TABLE runs;
CREATE TABLE IF NOT EXISTS idempotency (
    key TEXT PRIMARY KEY, fingerprint TEXT, run_id TEXT, status INTEGER, body BLOB, headers TEXT,
    at REAL
) WITHOUT ROWID;
INSERT OR IGNORE INTO idempotency_keys SELECT key, fingerprint, run_id, NULL, at FROM idempotency;
DROP TABLE idempotency;
"""
THREAD_SECONDS = 90 * 86_400.0


def open_store(root: Path) -> HostingStore:
    return HostingStore(root / "api.db", SCHEMA + MIGRATION)


async def delete_expired(store: HostingStore, now: float) -> None:
    """Delete expired threads."""
    await store.change("DELETE FROM threads WHERE at < ?", [(now - THREAD_SECONDS,)])
