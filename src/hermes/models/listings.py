"""The lists of models that providers give: kept ones, and new ones within a few seconds."""

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
from hermes.providers.model_servers import (
    ModelListing,
    ModelListingCache,
    detect_server,
    model_info,
)

SECONDS = 8.0


class ModelListings:
    def __init__(
        self, kept: ModelListingCache, http: HttpClient, accounts: Accounts, clock: Clock
    ) -> None:
        self._kept = kept
        self._clock = clock
        self._http = http
        self._accounts = accounts

    async def of(
        self, place: ProviderEntry, endpoint: Endpoint, *, refresh: bool = False
    ) -> tuple[ModelListing | None, str]:
        """The newest that can be had, and why it may not be the newest; "" when it is."""
        url = endpoint.url
        if not refresh and (fresh := self._kept.fresh(url)) is not None:
            return fresh, ""
        if not (place.own.discover_models and place.vendor.checkable):
            return self._kept.cached(url), ""
        try:
            async with asyncio.timeout(SECONDS):
                asked = await self._with_key(place, endpoint)
                found = await self._kept.fetch(
                    self._http, asked, models_url=place.vendor.models_url, refresh=refresh
                )
        except (HermesError, TimeoutError) as error:
            why = str(error).rstrip(".") or f"{endpoint.host} did not answer in time"
            return self._kept.cached(url), f"The list of models is not the newest: {why}."
        return found, ""

    async def learn_profile(self, endpoint: Endpoint) -> None:
        """Ask a server of one's own what this model can take as it runs now, unless it has told
        already. A server that does not say leaves things as they are."""
        kept = self._kept.fresh(endpoint.url)
        if not endpoint.is_local or (kept is not None and kept.find(endpoint.model) is not None):
            return
        server = endpoint.server or await detect_server(self._http, endpoint.url, key=endpoint.key)
        info = await model_info(
            self._http, endpoint.url, endpoint.model, key=endpoint.key, server=server or "none"
        )
        if info is not None:
            info = replace(info, id=endpoint.model)
            now = self._clock.now()
            self._kept.store(ModelListing(url=endpoint.url, at=now, models=(info,), server=server))

    async def _with_key(self, place: ProviderEntry, endpoint: Endpoint) -> Endpoint:
        """Logins have their tokens elsewhere."""
        if endpoint.key:
            return endpoint
        keys = self._accounts.keys_for(place.name, place.vendor)
        if isinstance(keys, SingleKey):
            return endpoint
        credential = await keys.pick()
        keys.release(credential)
        return credential.at(endpoint)
