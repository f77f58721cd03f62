"""Ensures that only one home per machine listens with a bot token."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

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
    file = _open(claims_folder(env) / f"{scope}-{_digest(token)}.lock")
    try:
        own = ClaimHolder(home=str(home.root), pid=os.getpid())
        if file >= 0 and (holder := _take(file, own)) is not None:
            who = f"{holder.home} (process {holder.pid})" if holder.home else "Another home"
            raise ConfigError(f"{who} listens with the same token; stop it, or {remedy}.")
        yield
    finally:
        if file >= 0:
            os.close(file)


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def _open(path: Path) -> int:
    """-1 if nothing can be written: this check must not keep a server from starting."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        log.warning("cannot write token claims", extra={"why": str(error)})
        return -1


def claims_folder(env: Mapping[str, str]) -> Path:
    if given := env.get(FOLDER_VARIABLE):
        return Path(given).expanduser()
    state = env.get("XDG_STATE_HOME") or Path(env.get("HOME") or "~").expanduser() / ".local/state"
    return Path(state) / "hermes" / "listeners"


def _take(file: int, own: ClaimHolder) -> ClaimHolder | None:
    """None if this home holds the claim now, else its holder. A process that locks the file alone
    writes its name; then processes of the same home share the lock."""
    for _ in range(TRIES):
        if _is_locked(file, fcntl.LOCK_EX):
            os.ftruncate(file, 0)
            os.pwrite(file, encode(own), 0)
        if _is_locked(file, fcntl.LOCK_SH):
            # No process can write while this lock is held.
            found = _read(file)
            return None if found.home == own.home else found
        time.sleep(TRY_SECONDS)
    return _read(file)


def _is_locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> ClaimHolder:
    try:
        return decode(ClaimHolder, os.pread(file, 65_536, 0))
    except DecodeError:
        return ClaimHolder(home="")
