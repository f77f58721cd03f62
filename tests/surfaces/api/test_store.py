"""The tables of the API server, also of earlier versions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hermes.codec.json import decode, encode
from hermes.core.world import World
from hermes.hosting.idempotency import Idempotency, digest
from hermes.hosting.request import TurnRequest, continuation_request
from hermes.surfaces.api.server_context import open_store

OLD = """
CREATE TABLE runs (id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID;
CREATE TABLE idempotency (
    key TEXT PRIMARY KEY, fingerprint TEXT, run_id TEXT, status INTEGER, body BLOB, headers TEXT,
    at REAL
) WITHOUT ROWID;
"""
RUN = "run_session_0123456789ab"


async def test_runs_and_keys_of_an_earlier_version_are_kept(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "api.db")) as db, db:
        db.executescript(OLD)
        db.execute("INSERT INTO runs VALUES (?, 1.0)", (RUN,))
        key = digest("owner", "/v1/runs", "k")
        row = (key, "f", RUN, 202, b"{}", "[]", 1.0)
        db.execute("INSERT INTO idempotency VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for _ in range(2):
        store = open_store(tmp_path)
        try:
            assert await store.unfinished_runs() == [(RUN, continuation_request("session"))]
            keys = Idempotency(store, World().clock)
            assert (await keys.claim("owner", "/v1/runs", "k", "f")).run_id == RUN
        finally:
            await store.close()


def test_a_stored_request_names_its_client_as_before() -> None:
    stored = b'{"session_id":"session","text":"Hi.","source":"api","principal":"phone"}'
    request = TurnRequest(session_id="session", text="Hi.", source="api", client="phone")
    assert encode(request) == stored
    assert decode(TurnRequest, stored) == request
