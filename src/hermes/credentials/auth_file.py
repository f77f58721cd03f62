"""Reads and writes auth.json, the stored keys and logins of a home, under a file lock."""

from __future__ import annotations

import asyncio
import calendar
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

import msgspec

from hermes.codec.file_lock import FileLock
from hermes.codec.json import DecodeError, convert, decode
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.home import Home, replace_file, unwritable_error
from hermes.core.errors import ConfigError
from hermes.providers.endpoint import WithSecrets

AuthType = Literal["api_key", "oauth"]
DEAD = "dead"
KEYRING = "keyring"
MANUAL = "manual"


class AuthEntry(WithSecrets):
    """One key or login in auth.json. Of a borrowed key only a fingerprint is stored."""

    hidden: ClassVar[tuple[str, ...]] = ("access_token", "refresh_token")

    id: str
    label: str = ""
    auth_type: AuthType = "api_key"
    priority: int = 0
    # MANUAL, a login, or borrowed: `env:NAME`, `config:NAME`, the name of another program
    source: str = MANUAL
    access_token: str = ""
    refresh_token: str = ""
    expires_at: float | None = None
    base_url: str = ""
    account_id: str = ""
    client_id: str = ""
    kept_in: str = ""  # "keyring" if the token is in the system keyring
    added_at: float = 0.0
    last_status: str = ""  # only ever "dead"; temporary states are in the key health file
    last_status_at: float = 0.0
    last_error_reason: str = ""
    last_error_message: str = ""
    secret_fingerprint: str = ""

    @property
    def is_dead(self) -> bool:
        return self.last_status == DEAD

    @property
    def is_borrowed(self) -> bool:
        return self.source.partition(":")[0] in ("env", "config")


_FIELDS = frozenset(AuthEntry.__struct_fields__)


def read_entry(raw: JsonObject) -> AuthEntry:
    """Decode an entry; raise DecodeError. Other programs write times as text and null for missing
    values."""
    known = {name: value for name, value in raw.items() if name in _FIELDS}
    for name in ("expires_at", "last_status_at"):
        if isinstance(known.get(name), str):
            known[name] = parse_time(known[name])
    return convert(AuthEntry, {name: value for name, value in known.items() if value is not None})


def write_entry(entry: AuthEntry, over: JsonObject) -> JsonObject:
    """Return the entry as JSON; unknown fields of the old form are kept."""
    foreign = {name: value for name, value in over.items() if name not in _FIELDS}
    own: JsonObject = {}
    for name, default in zip(
        AuthEntry.__struct_fields__[1:], AuthEntry.__struct_defaults__, strict=True
    ):
        value = getattr(entry, name)
        if value != default:
            own[name] = value
    return {"id": entry.id, **own, **foreign}


def parse_time(text: str) -> float | None:
    """Return the seconds since 1970 of an ISO time in UTC; None if it is not one."""
    try:
        return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def fingerprint_of(secret: str) -> str:
    """Return a hash that identifies a secret without revealing it."""
    return f"sha256:{hashlib.sha256(secret.encode()).hexdigest()[:16]}" if secret else ""


def borrowed_id(provider: str, source: str) -> str:
    """Return an id that is the same in every process, so that it need not be stored."""
    return hashlib.sha256(f"{provider}\n{source}".encode()).hexdigest()[:6]


PATIENCE_SECONDS = 15.0
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


@asynccontextmanager
async def hold_lock(path: Path, *, patience: float = PATIENCE_SECONDS) -> AsyncIterator[None]:
    """Hold the lock of a file against other processes, tasks and threads. Waiting blocks no thread
    and uses real time. Raise ConfigError if the lock is not free in time."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + patience, _FIRST_PAUSE
    lock = FileLock(path)
    try:
        while not _try_lock(lock):
            if loop.time() >= until:
                raise ConfigError(
                    f"Another process has locked {path} for more than {patience:.0f} s; "
                    "stop it and try again."
                )
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        yield
    finally:
        lock.close()


def _try_lock(lock: FileLock) -> bool:
    try:
        return lock.acquire(timeout=0)
    except OSError as error:
        raise unwritable_error(lock.path, error) from error


T = TypeVar("T")

FILE = "auth.json"
VERSION = 1
_READ_AGAIN_SECONDS = (0.02, 0.1)
_DEAD_KEPT_SECONDS = 86_400.0

Signature = tuple[int, int, int]


class AuthDocument:
    """The content of auth.json; unknown parts are kept."""

    def __init__(self, raw: JsonObject | None = None) -> None:
        self.raw: JsonObject = raw if raw is not None else {"version": VERSION}

    @property
    def active_provider(self) -> str:
        found = self.raw.get("active_provider")
        return found if isinstance(found, str) else ""

    def providers(self) -> tuple[str, ...]:
        return tuple(self._pools())

    def entries(self, provider: str) -> tuple[AuthEntry, ...]:
        """Return the entries, best first. Unreadable entries are skipped, and stay in the file."""
        found = []
        for raw in self._list(provider):
            with suppress(DecodeError):
                if isinstance(raw, dict):
                    found.append(read_entry(raw))
        return tuple(sorted(found, key=lambda entry: entry.priority))

    def entry(self, provider: str, entry_id: str) -> AuthEntry | None:
        return next((e for e in self.entries(provider) if e.id == entry_id), None)

    def suppressed_sources(self, provider: str) -> frozenset[str]:
        sources = self.raw.get("suppressed_sources")
        found = sources.get(provider, []) if isinstance(sources, dict) else []
        return frozenset(text for text in found if isinstance(text, str))

    def put(self, provider: str, entry: AuthEntry) -> None:
        """Replace the entry with this id, or append it."""
        pool = self._pools(make=True).setdefault(provider, [])
        for index, raw in enumerate(pool):
            if isinstance(raw, dict) and raw.get("id") == entry.id:
                pool[index] = write_entry(entry, raw)
                return
        pool.append(write_entry(entry, {}))

    def drop(self, provider: str, entry_id: str) -> None:
        kept = [
            raw
            for raw in self._list(provider)
            if not (isinstance(raw, dict) and raw.get("id") == entry_id)
        ]
        pools = self._pools(make=True)
        pools[provider] = kept
        if not kept:
            del pools[provider]

    def suppress(self, provider: str, source: str, *, on: bool = True) -> None:
        """Ignore a source until it is added again; `on=False` uses it again."""
        sources = {*self.suppressed_sources(provider), source} - (set() if on else {source})
        suppressed = self.raw.setdefault("suppressed_sources", {})
        suppressed[provider] = sorted(sources)
        if not sources:
            del suppressed[provider]

    def activate(self, provider: str) -> None:
        """Set the active provider; "" clears it."""
        self.raw["active_provider"] = provider or None

    def forget_dead(self, now: float) -> None:
        """Remove logins that were added by hand and have been dead for a day."""
        for provider in self.providers():
            for entry in self.entries(provider):
                old = entry.last_status_at and now - entry.last_status_at > _DEAD_KEPT_SECONDS
                if entry.is_dead and old and entry.source.startswith(MANUAL):
                    self.drop(provider, entry.id)

    def _list(self, provider: str) -> list[JsonValue]:
        found = self._pools().get(provider, [])
        return found if isinstance(found, list) else []

    def _pools(self, *, make: bool = False) -> dict[str, JsonValue]:
        found = self.raw.get("credential_pool")
        if isinstance(found, dict):
            return found
        fresh: dict[str, JsonValue] = {}
        if make:
            self.raw["credential_pool"] = fresh
        return fresh


class AuthFile:
    """The file of one home. It is read when it has changed, and replaced under a lock that all
    processes share."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.root / FILE
        self._known: tuple[Signature | None, AuthDocument] = (None, AuthDocument())

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Hold the lock for writes."""
        return hold_lock(self._home.ensure_folder(self._home.root) / "auth.lock")

    @property
    def signature(self) -> Signature | None:
        """A value that changes when the file changes; None if there is no file."""
        return file_signature(self.path)

    async def read(self) -> AuthDocument:
        """Return the current content, read-only. Raise ConfigError if it is damaged."""
        found = self.signature
        if found is None or found != self._known[0]:
            self._known = (found, await self.read_fresh())
        return self._known[1]

    def peek(self) -> AuthDocument:
        """Read like `read`, without waiting for a program that is writing."""
        found = self.signature
        if found is None or found != self._known[0]:
            self._known = (found, self._parse())
        return self._known[1]

    async def read_fresh(self) -> AuthDocument:
        """Return the current content, for the holder of the lock to change. Retry while another
        program writes in place."""
        for pause in _READ_AGAIN_SECONDS:
            try:
                return self._parse()
            except ConfigError:
                await asyncio.sleep(pause)
        return self._parse()

    async def edit(self, change: Callable[[AuthDocument], T]) -> T:
        """Apply a change under the lock."""
        async with self.lock():
            document = await self.read_for_edit()
            result = change(document)
            self.write(document)
            return result

    async def read_for_edit(self) -> AuthDocument:
        """Read the content; copy a damaged file before raising ConfigError."""
        try:
            return await self.read_fresh()
        except ConfigError as error:
            copy = self.path.with_name(f"{FILE}.damaged")
            replace_file(self._home, copy, self.path.read_bytes())
            raise ConfigError(f"{error} A copy is in {copy.name}.") from error

    def write(self, document: AuthDocument) -> None:
        """Write the file. Requires the lock. The write is durable on return."""
        data = msgspec.json.format(msgspec.json.encode(document.raw), indent=2)
        replace_file(self._home, self.path, data + b"\n")

    def _parse(self) -> AuthDocument:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return AuthDocument()
        except OSError as error:
            raise ConfigError(
                f"Cannot read {self.path} ({error.strerror}); check its permissions."
            ) from error
        try:
            raw = decode(dict[str, JsonValue], data)
        except DecodeError as error:
            raise ConfigError(
                f"{self.path} is damaged ({str(error).rstrip('.')}); repair it, or move it "
                "away and log in again."
            ) from error
        version = raw.get("version", VERSION)
        if isinstance(version, int) and version > VERSION:
            raise ConfigError(f"{self.path} has a newer version ({version}); update Hermes.")
        return AuthDocument(raw)


def file_signature(path: Path) -> Signature | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
