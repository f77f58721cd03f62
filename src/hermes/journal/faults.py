"""Classifies SQLite and system errors, and words them for people."""

from __future__ import annotations

import sqlite3
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path

from hermes.core.errors import DiskFull, JournalError

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ")
# SQLite reports only ENOSPC as full; a quota or file size limit is a failed write.
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")
_READ_ONLY = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")


def name_of(error: sqlite3.Error) -> str:
    """SQLite's name of the error, or ""."""
    return str(getattr(error, "sqlite_errorname", ""))


def is_damage(error: sqlite3.Error) -> bool:
    """The file is damaged, as opposed to busy, full or unreachable."""
    return name_of(error).startswith(_DAMAGE)


def is_forbidden(error: sqlite3.Error) -> bool:
    """The file could not be opened or created."""
    return name_of(error).startswith(_READ_ONLY)


def journal_error(error: sqlite3.Error | OSError, path: Path) -> JournalError:
    """The error as one sentence for a person, with the next step."""
    if isinstance(error, OSError):
        return _of_system(error, path)
    name = name_of(error)
    if name.startswith(_FULL):
        return _disk_full(path)
    if is_forbidden(error):
        return JournalError(
            f"{path} cannot be opened for writing; make the folder writable or choose another home."
        )
    if name.startswith(_BUSY):
        return JournalError(
            f"Another program has locked {path}, perhaps a database browser; close it and "
            "try again."
        )
    if is_damage(error):
        return JournalError(
            f"A part of {path} is damaged ({error}); `hermes sessions verify` names what is lost."
        )
    return JournalError(f"The journal {path} failed: {error}.")


def _of_system(error: OSError, path: Path) -> JournalError:
    if error.errno in (ENOSPC, EDQUOT, EFBIG):
        return _disk_full(path)
    return JournalError(
        f"The journal in {path.parent} cannot be written ({error.strerror}); "
        "make the folder writable or choose another home."
    )


def _disk_full(path: Path) -> DiskFull:
    return DiskFull(
        f"The disk of {path.parent} is full or over a limit, so nothing was written; "
        "free some space and try again."
    )
