"""Caches the listings of sources for an hour."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.codec.whole_files import replace_file
from hermes.core.world import Clock
from hermes.skills.hub.listing import SkillListing

SECONDS = 3600.0


class _CachedListings(Value):
    at: float
    listings: tuple[SkillListing, ...]


class IndexCache:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    async def listings(
        self, key: str, make: Callable[[], Awaitable[tuple[SkillListing, ...]]]
    ) -> tuple[SkillListing, ...]:
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        now = self._clock.now()
        try:
            cached = decode(_CachedListings, path.read_bytes())
            if 0 <= now - cached.at < SECONDS:
                return cached.listings
        except (OSError, DecodeError):
            pass
        found = await make()
        replace_file(path, encode(_CachedListings(at=now, listings=found)), durable=False)
        return found
