"""Ensures that only one home per machine listens with a bot token."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from hermes.codec.file_lock import FileLock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.home import Home
from hermes.core.errors import ConfigError

log = logging.getLogger(__name__)

FOLDER_VARIABLE = "HERMES_GATEWAY_LOCK_DIR"
DIGITS = 16
TRIES = 50
TRY_SECONDS = 0.02


class ClaimHolder(Value):
    """The home and process that hold a claim. The token itself is not stored."""

    home: str
    pid: int = 0


@contextmanager
def hold_claim(
    scope: str, token: str, *, remedy: str, home: Home, env: Mapping[str, str]
) -> Iterator[None]:
    """Hold the claim on this token. Raises ConfigError while a process of another home holds it;
    processes of one home share it. `remedy` says how this home gets its own token. The kernel
    releases the claim when a process dies."""
    digest = sha256(token.encode("utf-8", "replace")).hexdigest()[:DIGITS]
    lock = FileLock(claims_folder(env) / f"{scope}-{digest}.lock")
    try:
        if (holder := _take(lock, ClaimHolder(home=str(home.root), pid=os.getpid()))) is not None:
            who = f"{holder.home} (process {holder.pid})" if holder.home else "Another home"
            raise ConfigError(f"{who} listens with the same token; stop it, or {remedy}.")
        yield
    finally:
        lock.close()


def claims_folder(env: Mapping[str, str]) -> Path:
    if folder := env.get(FOLDER_VARIABLE):
        return Path(folder).expanduser()
    state = env.get("XDG_STATE_HOME") or Path(env.get("HOME") or "~").expanduser() / ".local/state"
    return Path(state) / "hermes" / "listeners"


def _take(lock: FileLock, own: ClaimHolder) -> ClaimHolder | None:
    """Take the claim and return None. If another home has it, return the holder. A process that
    locks the file alone writes its name; then processes of the same home share the lock."""
    try:
        for _ in range(TRIES):
            if lock.acquire(timeout=0):
                lock.path.write_bytes(encode(own))
                lock.release()
            if lock.acquire(timeout=0, shared=True):
                # No process can write while this lock is held.
                found = _read(lock.path)
                return None if found.home == own.home else found
            time.sleep(TRY_SECONDS)
        return _read(lock.path)
    except OSError as error:
        # This check must not keep a server from starting.
        log.warning("cannot write token claims", extra={"why": str(error)})
        return None


def _read(path: Path) -> ClaimHolder:
    try:
        return decode(ClaimHolder, path.read_bytes())
    except DecodeError:
        return ClaimHolder(home="")
