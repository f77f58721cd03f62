"""Pairing: a person who writes to the bot gets a code, and the owner approves it on the command
line. Codes are stored as slow hashes; approvals, limits and lockouts survive restarts."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hmac import compare_digest
from math import ceil
from pathlib import Path
from typing import TypeVar

from hermes.codec.file_lock import hold_lock
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.config.home import Home, replace_file
from hermes.core.errors import ConfigError, NotFound
from hermes.core.world import Clock

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_CHARS = 8
CODE_SECONDS = 3_600.0
MAX_PENDING = 3
REQUEST_SECONDS = 600.0
MAX_FAILURES = 5
LOCKOUT_SECONDS = 3_600.0
NAME_CHARS = 200
# A code has 40 bits: a fast hash of it could be searched within minutes.
_HASH = {"n": 2**12, "r": 8, "p": 1, "dklen": 32}

T = TypeVar("T")


class PendingCode(Value):
    """A code that waits for approval; only its hash is known."""

    hash: str
    salt: str
    user_id: str
    user_name: str
    created_at: float
    # The chat in which they asked.
    chat_id: str = ""


class PairedUser(Value):
    """A person who was approved."""

    user_name: str
    approved_at: float
    chat_id: str = ""


class RequestLimits(Value):
    """Requests and wrong codes of one platform."""

    # When each person last got a code.
    requests: dict[str, float] = {}
    failures: int = 0
    locked_until: float = 0.0


class PendingRow(Value):
    """A waiting request, as it is listed."""

    platform: str
    user_id: str
    user_name: str
    created_at: float


class PairedRow(Value):
    """An approved person, as they are listed."""

    platform: str
    user_id: str
    user_name: str
    approved_at: float
    chat_id: str = ""


class PairingStore:
    """The files in `pairing/` of a home. The gateway issues codes, and commands approve them; both
    may run at once."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self.folder = home.root / "pairing"
        # The approved ids of a platform and the file state that they come from.
        self._cache: dict[str, tuple[tuple[int, int], frozenset[str]]] = {}

    def is_approved(self, platform: str, user_ids: tuple[str, ...]) -> bool:
        """Whether one of these ids of a person is approved. Rereads the file when it changed."""
        path = self._approved_path(platform)
        try:
            found = path.stat()
        except OSError:
            return False
        state = (found.st_mtime_ns, found.st_ino)
        cached = self._cache.get(platform)
        if cached is None or cached[0] != state:
            cached = (state, frozenset(self._approved(platform)))
            self._cache[platform] = cached
        return not cached[1].isdisjoint(user_ids)

    async def request(self, platform: str, user_id: str, user_name: str, chat_id: str = "") -> str:
        """A new code for this person; "" when they asked a short time ago, when too many requests
        wait, or during a lockout."""
        return await asyncio.to_thread(self._request, platform, user_id, user_name, chat_id)

    def _request(self, platform: str, user_id: str, user_name: str, chat_id: str) -> str:
        now = self._clock.now()
        with self._edit():
            limits, pending = self._limits(platform), self._pending(platform)
            asked = limits.requests.get(user_id, 0.0)
            if now < limits.locked_until or len(pending) >= MAX_PENDING:
                return ""
            if 0 <= now - asked < REQUEST_SECONDS:
                return ""
            code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
            salt = secrets.token_hex(16)
            pending[secrets.token_hex(8)] = PendingCode(
                hash=_digest(salt, code),
                salt=salt,
                user_id=user_id,
                user_name=" ".join(user_name.split())[:NAME_CHARS],
                created_at=now,
                chat_id=chat_id,
            )
            recent = {
                each: at for each, at in limits.requests.items() if now - at < REQUEST_SECONDS
            }
            self._write_limits(platform, replace(limits, requests={**recent, user_id: now}))
            self._write(self._pending_path(platform), pending)
        return code

    def approve(self, platform: str, code: str) -> PairedRow:
        """Approve the person who has this code. NotFound for a wrong or expired one, ConfigError
        during the lockout that follows too many of them."""
        now = self._clock.now()
        typed = code.upper().replace("-", "").replace(" ", "")
        with self._edit():
            limits = self._limits(platform)
            if now < limits.locked_until:
                minutes = ceil((limits.locked_until - now) / 60)
                raise ConfigError(
                    f"Too many wrong codes for {platform}; try again in {minutes} minutes."
                )
            pending = self._pending(platform)
            # Every entry is compared, so that the time says nothing.
            matches = [
                entry
                for entry, each in pending.items()
                if compare_digest(each.hash, _digest(each.salt, typed))
            ]
            if not matches:
                self._count_failure(platform, limits, now)
                raise NotFound(
                    f"No request on {platform} has this code, or it has expired; "
                    "`hermes pairing list` shows the waiting requests."
                )
            entry = pending.pop(matches[0])
            user = PairedUser(user_name=entry.user_name, approved_at=now, chat_id=entry.chat_id)
            approved = self._approved(platform)
            self._write(self._approved_path(platform), {**approved, entry.user_id: user})
            self._write(self._pending_path(platform), pending)
            self._write_limits(platform, replace(limits, failures=0))
        return _row(platform, entry.user_id, user)

    def _count_failure(self, platform: str, limits: RequestLimits, now: float) -> None:
        failures = limits.failures + 1
        is_locked = failures >= MAX_FAILURES
        self._write_limits(
            platform,
            replace(
                limits,
                failures=0 if is_locked else failures,
                locked_until=now + LOCKOUT_SECONDS if is_locked else 0.0,
            ),
        )

    def revoke(self, platform: str, user_id: str) -> None:
        with self._edit():
            approved = self._approved(platform)
            if user_id not in approved:
                known = tuple(approved)
                raise NotFound(f"{user_id} is not paired on {platform}.", near=known)
            del approved[user_id]
            self._write(self._approved_path(platform), approved)

    def clear_pending(self) -> int:
        """Drop all waiting requests and return their number."""
        with self._edit():
            rows = self.pending()
            for platform in {row.platform for row in rows}:
                self._write(self._pending_path(platform), {})
        return len(rows)

    def pending(self) -> tuple[PendingRow, ...]:
        return tuple(
            PendingRow(
                platform=platform,
                user_id=each.user_id,
                user_name=each.user_name,
                created_at=each.created_at,
            )
            for platform in self._platforms("pending")
            for each in self._pending(platform).values()
        )

    def approved(self) -> tuple[PairedRow, ...]:
        return tuple(
            _row(platform, user_id, each)
            for platform in self._platforms("approved")
            for user_id, each in self._approved(platform).items()
        )

    @contextmanager
    def _edit(self) -> Iterator[None]:
        self._home.ensure_folder(self.folder)
        with hold_lock(self.folder / ".lock"):
            yield

    def _platforms(self, kind: str) -> list[str]:
        names = (path.name for path in self.folder.glob(f"*-{kind}.json"))
        return sorted(name.removesuffix(f"-{kind}.json") for name in names)

    def _pending_path(self, platform: str) -> Path:
        return self.folder / f"{platform}-pending.json"

    def _approved_path(self, platform: str) -> Path:
        return self.folder / f"{platform}-approved.json"

    @property
    def _limits_path(self) -> Path:
        return self.folder / "_rate_limits.json"

    def _pending(self, platform: str) -> dict[str, PendingCode]:
        """The codes that are still valid. One from the future counts as expired: the clock was
        changed."""
        now = self._clock.now()
        stored = self._read(dict[str, PendingCode], self._pending_path(platform))
        return {
            entry: each
            for entry, each in stored.items()
            if 0 <= now - each.created_at < CODE_SECONDS
        }

    def _approved(self, platform: str) -> dict[str, PairedUser]:
        return self._read(dict[str, PairedUser], self._approved_path(platform))

    def _limits(self, platform: str) -> RequestLimits:
        stored = self._read(dict[str, RequestLimits], self._limits_path)
        return stored.get(platform, RequestLimits())

    def _write_limits(self, platform: str, limits: RequestLimits) -> None:
        stored = self._read(dict[str, RequestLimits], self._limits_path)
        self._write(self._limits_path, {**stored, platform: limits})

    def _read(self, kind: type[T], path: Path) -> T:
        try:
            return decode(kind, path.read_bytes())
        except FileNotFoundError:
            return kind()
        except DecodeError as error:
            # Nobody is let in, and no limit is forgotten, because a file cannot be read.
            raise ConfigError(f"{path} is damaged ({error}); correct or remove it.") from error

    def _write(self, path: Path, data: object) -> None:
        replace_file(self._home, path, encode(data))


def _row(platform: str, user_id: str, user: PairedUser) -> PairedRow:
    return PairedRow(
        platform=platform,
        user_id=user_id,
        user_name=user.user_name,
        approved_at=user.approved_at,
        chat_id=user.chat_id,
    )


def _digest(salt: str, code: str) -> str:
    return hashlib.scrypt(code.encode(), salt=salt.encode(), **_HASH).hex()
