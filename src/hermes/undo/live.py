"""Tracks which sessions are open in some process, by locks that end with their holder."""

from __future__ import annotations

import contextlib
import fcntl
import os

from hermes.undo.store import CheckpointStore


def lock_session(store: CheckpointStore, session: str) -> int | None:
    """Mark the session as open here until the descriptor is closed; None when another process has
    it open."""
    folder = store.folder / "live"
    store.prepare()
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / (session.replace("/", "_") or "_")
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A cleanup may have removed the file just before it was locked.
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def open_sessions(store: CheckpointStore) -> set[str]:
    """Return the sessions that are open in some process, and remove stale files."""
    found = set()
    folder = store.folder / "live"
    for path in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            except OSError:
                found.add(path.name)
            finally:
                os.close(descriptor)
    return found
