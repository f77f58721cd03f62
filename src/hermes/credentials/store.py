"""Reads and writes auth.json, the stored keys and logins of a home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.files import replace_file
from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.credentials.entry import MANUAL, AuthEntry, read_entry, write_entry
from hermes.credentials.locks import HomeLock

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
        """Best first. Unreadable entries are skipped, and stay in the file."""
        found = [entry for raw in self._list(provider) if (entry := _decode_entry(raw)) is not None]
        return tuple(sorted(found, key=lambda entry: entry.priority))

    def entry(self, provider: str, entry_id: str) -> AuthEntry | None:
        return next((e for e in self.entries(provider) if e.id == entry_id), None)

    def suppressed_sources(self, provider: str) -> frozenset[str]:
        held = self.raw.get("suppressed_sources")
        found = held.get(provider, []) if isinstance(held, dict) else []
        return frozenset(text for text in found if isinstance(text, str))

    def put(self, provider: str, entry: AuthEntry) -> None:
        """Replaces the entry with this id, or appends it."""
        pool = self._pools(make=True).setdefault(provider, [])
        for place, raw in enumerate(pool):
            if isinstance(raw, dict) and raw.get("id") == entry.id:
                pool[place] = write_entry(entry, raw)
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
        """Suppressed sources are ignored until they are added again."""
        sources = {*self.suppressed_sources(provider), source} - (set() if on else {source})
        held = self.raw.setdefault("suppressed_sources", {})
        held[provider] = sorted(sources)
        if not sources:
            del held[provider]

    def activate(self, provider: str) -> None:
        """ "" for none."""
        self.raw["active_provider"] = provider or None

    def forget_dead(self, now: float) -> None:
        """Removes logins that were added by hand and have been dead for a day."""
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


def _decode_entry(raw: JsonValue) -> AuthEntry | None:
    try:
        return read_entry(raw) if isinstance(raw, dict) else None
    except DecodeError:
        return None


class AuthFile:
    """The file of one home. It is read when it has changed, and replaced under a lock that all
    processes share."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = home.root / FILE
        self.lock = HomeLock(home, home.root / "auth.lock")
        self._known: tuple[Signature | None, AuthDocument] = (None, AuthDocument())

    @property
    def signature(self) -> Signature | None:
        """Changes with the file; None if there is none."""
        return file_signature(self.path)

    async def read(self) -> AuthDocument:
        """The current content, read-only. Raises ConfigError if it is damaged."""
        found = self.signature
        if found is None or found != self._known[0]:
            self._known = (found, await self.read_fresh())
        return self._known[1]

    def peek(self) -> AuthDocument:
        """Like `read`, without waiting for a program that is writing."""
        found = self.signature
        if found is None or found != self._known[0]:
            self._known = (found, self._parse())
        return self._known[1]

    async def read_fresh(self) -> AuthDocument:
        """The current content, for the holder of the lock to change. Retries while another program
        writes in place."""
        for pause in _READ_AGAIN_SECONDS:
            try:
                return self._parse()
            except ConfigError:
                await asyncio.sleep(pause)
        return self._parse()

    async def edit(self, change: Callable[[AuthDocument], T]) -> T:
        """Applies a change under the lock."""
        async with self.lock.hold():
            document = await self.read_for_edit()
            result = change(document)
            self.write(document)
            return result

    async def read_for_edit(self) -> AuthDocument:
        """Copies a damaged file before raising ConfigError."""
        try:
            return await self.read_fresh()
        except ConfigError as error:
            copy = self.path.with_name(f"{FILE}.damaged")
            replace_file(self._home, copy, self.path.read_bytes())
            raise ConfigError(f"{error} A copy is in {copy.name}.") from error

    def write(self, document: AuthDocument) -> None:
        """Requires the lock. The write is durable on return."""
        data = msgspec.json.format(msgspec.json.encode(document.raw), indent=2)
        replace_file(self._home, self.path, data + b"\n")

    def _parse(self) -> AuthDocument:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return AuthDocument()
        except OSError as error:
            raise ConfigError(f"Cannot read {self.path} ({error.strerror}).") from error
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
