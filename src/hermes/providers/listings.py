"""Caches model listings of endpoints in files that may be deleted at any time."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.codec.whole_files import replace_file
from hermes.core.world import Clock
from hermes.providers.addresses import host_of
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import HttpClient
from hermes.providers.listing import ModelInfo
from hermes.providers.servers import detect_server, list_models

TTL_SECONDS = 3600.0


class ModelListing(Value):
    """The models of an address at a moment (Unix time). `server` is the kind of a local server in
    the catalogue."""

    url: str
    at: float
    models: tuple[ModelInfo, ...]
    server: str = ""

    def find(self, model: str) -> ModelInfo | None:
        """By id; a name without a maker prefix also finds an entry that has one."""
        name = model.lower()
        exact = (info for info in self.models if info.id.lower() == name)
        tails = (info for info in self.models if info.id.lower().rpartition("/")[2] == name)
        return next(exact, None) or next(tails, None)


class ModelListingCache:
    """Listings younger than `seconds` are not fetched again. Reading never raises: a missing or
    damaged file counts as no listing."""

    def __init__(self, folder: Path, clock: Clock, *, seconds: float = TTL_SECONDS) -> None:
        self._folder = folder
        self._clock = clock
        self._seconds = seconds

    def cached(self, url: str) -> ModelListing | None:
        """The cached listing of this address, of any age."""
        try:
            found = decode(ModelListing, self._file(url).read_bytes())
        except (OSError, DecodeError):
            return None
        return found if found.url == url else None

    def fresh(self, url: str) -> ModelListing | None:
        found = self.cached(url)
        if found is None or not 0 <= self._clock.now() - found.at < self._seconds:
            return None
        return found

    async def fetch(
        self, http: HttpClient, endpoint: Endpoint, *, models_url: str = "", refresh: bool = False
    ) -> ModelListing:
        """A fresh listing, cached or fetched; ProviderError when the endpoint returns none."""
        if not refresh and (kept := self.fresh(endpoint.url)) is not None:
            return kept
        models = await list_models(http, endpoint, models_url=models_url)
        server = endpoint.server
        if not server and endpoint.is_local:
            server = await detect_server(http, endpoint.url, key=endpoint.key)
        listing = ModelListing(url=endpoint.url, at=self._clock.now(), models=models, server=server)
        self.store(listing)
        return listing

    def store(self, listing: ModelListing) -> None:
        """Writes atomically; does nothing if the folder is not writable."""
        path = self._file(listing.url)
        with suppress(OSError):
            replace_file(path, encode(listing), durable=False)

    def _file(self, url: str) -> Path:
        digest = hashlib.sha256(url.encode()).hexdigest()[:12]
        return self._folder / f"models-{host_of(url) or 'unknown'}-{digest}.json"
