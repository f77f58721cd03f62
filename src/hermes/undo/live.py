"""Which sessions some process is in right now: a lock that dies with its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os

from hermes.undo.store import Store


def hold(store: Store, session: str) -> int | None:
    """Say that the session is alive here, until the descriptor is closed; None when it is alive
    in another process."""
    folder = store.folder / "live"
    store.prepare()
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / (session.replace("/", "_") or "_")
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody who tidies up may have removed the file just before it was locked.
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def alive_sessions(store: Store) -> set[str]:
    """Those that some process is in right now; what others left behind is tidied up."""
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
