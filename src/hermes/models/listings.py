"""Model lists of providers: cached lists, and fresh ones fetched with a short timeout."""

from __future__ import annotations

import asyncio

from hermes.codec.values import replace
from hermes.core.errors import HermesError
from hermes.core.world import Clock
from hermes.credentials.accounts import Accounts
from hermes.models.names import ProviderEntry
from hermes.net.http import HttpClient
from hermes.providers.endpoint import Endpoint
from hermes.providers.keys import SingleKey
from hermes.providers.model_servers import ModelListing, ModelListingCache, query_endpoint

SECONDS = 8.0


class ModelListings:
    def __init__(
        self, cache: ModelListingCache, http: HttpClient, accounts: Accounts, clock: Clock
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._http = http
        self._accounts = accounts

    async def of(
        self, entry: ProviderEntry, endpoint: Endpoint, *, refresh: bool = False
    ) -> tuple[ModelListing | None, str]:
        """Return the newest available list, and why it may be outdated ("" when it is fresh)."""
        url = endpoint.url
        if not refresh and (fresh := self._cache.fresh(url)) is not None:
            return fresh, ""
        if not (entry.own.discover_models and entry.vendor.checkable):
            return self._cache.cached(url), ""
        try:
            async with asyncio.timeout(SECONDS):
                target = await self._with_key(entry, endpoint)
                found = await self._cache.fetch(
                    self._http, target, models_url=entry.vendor.models_url, refresh=refresh
                )
        except (HermesError, TimeoutError) as error:
            why = str(error).rstrip(".") or f"{endpoint.host} did not answer in time"
            return self._cache.cached(url), f"The model list may be outdated: {why}."
        return found, ""

    def cached(self, url: str) -> ModelListing | None:
        """Return a fresh list that is already here. Makes no request."""
        return self._cache.fresh(url)

    async def learn_profile(self, endpoint: Endpoint) -> None:
        """Ask a local server for the model's current limits, unless they are cached. If the server
        does not answer, nothing changes."""
        listing = self._cache.fresh(endpoint.url, partial=True)
        if not endpoint.is_local or (
            listing is not None and listing.find(endpoint.model) is not None
        ):
            return
        server, info = await query_endpoint(self._http, endpoint)
        if info is not None:
            info = replace(info, id=endpoint.model)
            now = self._clock.now()
            self._cache.store(
                ModelListing(
                    url=endpoint.url, at=now, models=(info,), server=server, complete=False
                )
            )

    async def _with_key(self, entry: ProviderEntry, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with a key; logins get theirs from the account."""
        if endpoint.key:
            return endpoint
        keys = self._accounts.keys_for(entry.name, entry.vendor)
        if isinstance(keys, SingleKey):
            return endpoint
        credential = await keys.pick()
        keys.release(credential)
        return credential.at(endpoint)
