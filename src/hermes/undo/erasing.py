"""Removes contents from the store that the user wants to erase."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from hermes.core.wiping import scrub_database
from hermes.undo.store import CheckpointStore

# Larger objects are not texts of a conversation.
MOST_BYTES = 64 << 20


def erase_contents(
    store: CheckpointStore, remove_phrases: Callable[[str], str]
) -> tuple[int, bool]:
    """Drop every content that `erased` would change. Return how many, and whether no page of the
    store contains them afterwards (see `wiped`). They can no longer be restored."""
    if not store.exists:
        return 0, True
    doomed = [*_small(store, remove_phrases), *_large(store, remove_phrases)]
    with store.writing() as db:
        db.execute("PRAGMA secure_delete = ON")
        db.executemany("DELETE FROM blobs WHERE token = ?", [(token,) for token in doomed])
        db.executemany("DELETE FROM objects WHERE token = ?", [(token,) for token in doomed])
        for id, words in db.execute("SELECT id, words FROM calls").fetchall():
            if (rest := remove_phrases(words)) != words:
                db.execute("UPDATE calls SET words = ? WHERE id = ?", (rest, id))
        if doomed:
            db.execute(
                "INSERT INTO meta VALUES('generation', 1)"
                " ON CONFLICT(key) DO UPDATE SET value = value + 1"
            )
    for token in doomed:
        store.discard_object(token)
    with store.reading() as db:
        is_wiped = scrub_database(db)
    return len(doomed), is_wiped


def _small(store: CheckpointStore, remove_phrases: Callable[[str], str]) -> list[bytes]:
    with store.reading() as db:
        rows = db.execute("SELECT token, squeezed, data FROM blobs")
        return [
            bytes(token)
            for token, squeezed, data in rows
            if _holds(zlib.decompress(data) if squeezed == 1 else bytes(data), remove_phrases)
        ]


def _large(store: CheckpointStore, remove_phrases: Callable[[str], str]) -> list[bytes]:
    with store.reading() as db:
        rows = db.execute("SELECT token FROM objects WHERE size <= ?", (MOST_BYTES,)).fetchall()
    found: list[bytes] = []
    for (token,) in rows:
        path = store.object_path(token)
        if path.is_file() and not path.is_symlink() and _holds(path.read_bytes(), remove_phrases):
            found.append(bytes(token))
    return found


def _holds(data: bytes, remove_phrases: Callable[[str], str]) -> bool:
    text = data.decode("utf-8", "replace")
    return remove_phrases(text) != text
