"""Opens the way to an endpoint: its keys, its time limits, the meter that books every call, and
the guard that lets no secret pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import replace
from hermes.config.settings import Settings
from hermes.core.messages import Usage
from hermes.core.metering import Metered
from hermes.core.ports import Meter, Provider
from hermes.core.world import World
from hermes.credentials.accounts import Accounts
from hermes.models.advice import ErrorAdviser
from hermes.models.choice import ModelRef
from hermes.models.resolver import Resolver
from hermes.net.http import LOCAL_TIMEOUTS, HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint, may_send
from hermes.providers.fallback import ErrorAdvisor
from hermes.providers.keys import Credential, SingleKey
from hermes.providers.pipeline import ConnectSettings, KeyChoice, RequestWrapper, build_variants
from hermes.providers.profile import FREE
from hermes.providers.retry import RetryVariants


class ProviderFactory:
    def __init__(
        self,
        settings: Settings,
        world: World,
        http: HttpClient,
        resolver: Resolver,
        accounts: Accounts,
        guard: Callable[[Provider], Provider],
    ) -> None:
        self._guard = guard
        self._settings = settings
        self._world = world
        self._http = http
        self._resolver = resolver
        self._accounts = accounts
        # Whether a provider has one key only, by its name.
        self.cache: TtlCache[bool] = TtlCache()

    def build(
        self,
        endpoint: Endpoint,
        wish: ModelRef,
        meter: Meter,
        *,
        cause: str,
        attempts: int | None = None,
    ) -> RetryVariants:
        """`attempts` None are as many as the settings allow for a chat."""
        settings = ConnectSettings(
            attempts=attempts or self._settings.agent.api_max_retries,
            silences=self._settings.network.stream_stale_giveup,
            mark_life=self._settings.prompt_caching.cache_ttl,
            timeouts=self._timeouts(endpoint),
        )
        lessons = self._resolver.lessons(endpoint)
        way = build_variants(
            endpoint,
            http=self._http,
            world=self._world,
            settings=settings,
            gate=self._metering(meter, cause),
            ring=self._key_ring(endpoint, wish),
            lessons=lessons,
        )
        place = self._resolver.places.get(endpoint.name)
        adviser = ErrorAdviser(
            self._resolver, place, endpoint, partial(self._resolver.key_source, wish)
        )
        return RetryVariants(
            eager=self._guard(ErrorAdvisor(way.eager, endpoint, adviser, lessons)),
            patient=self._guard(ErrorAdvisor(way.patient, endpoint, adviser, lessons)),
        )

    def build_in_process(
        self, inner: Provider, wish: ModelRef, meter: Meter, *, cause: str
    ) -> RetryVariants:
        """The way to a model of this process, which costs nothing and is booked all the same."""
        booked = Metered(
            inner,
            meter,
            world=self._world,
            model=wish.model,
            provider=wish.provider,
            cost=FREE.cost,
            max_output=None,
            cause=cause,
        )
        guarded = self._guard(booked)
        return RetryVariants(eager=guarded, patient=guarded)

    def _metering(self, meter: Meter, cause: str) -> RequestWrapper:
        def metered(inner: Provider, at: Endpoint) -> Provider:
            profile = at.profile
            return Metered(
                inner,
                meter,
                world=self._world,
                model=at.model,
                provider=at.name,
                cost=profile.price.cost if profile.price is not None else _unknown_price,
                max_output=profile.max_output,
                cause=cause,
            )

        return metered

    def _key_ring(self, endpoint: Endpoint, wish: ModelRef) -> KeyChoice | None:
        """Several keys or a login; None where the endpoint's own key is all there is."""
        if wish.base_url or wish.api_key or wish.key_env:
            return None
        place = self._resolver.places.get(endpoint.name)
        if self.cache.peek(place.name):
            return None
        keys = self._accounts.keys_for(place.name, place.vendor)
        if self.cache.put(place.name, isinstance(keys, SingleKey)):
            return None

        def at(key: Credential) -> Endpoint:
            asked = key.at(endpoint)
            may = may_send(
                self._resolver.catalogue,
                place.vendor,
                asked.url,
                key_source=key.source,
                url_source="config" if asked.url != place.vendor.url else "",
            )
            return asked if may else replace(asked, key="")

        return KeyChoice(keys, at)

    def _timeouts(self, endpoint: Endpoint) -> Timeouts:
        place, network = self._resolver.places.get(endpoint.name), self._settings.network
        own, model = place.own, place.own.models.get(endpoint.model)
        whole = (model and model.timeout_seconds) or own.request_timeout_seconds
        whole = whole or network.request_timeout_seconds
        if endpoint.is_local:
            stale = own.stale_timeout_seconds or self._settings.agent.local_stream_stale_timeout
            if stale is None:
                return self._local_timeouts(endpoint, whole)
            return Timeouts(read=stale, stale=stale, whole=whole)
        return Timeouts(
            read=network.stream_read_timeout_seconds,
            stale=own.stale_timeout_seconds or network.stream_stale_timeout_seconds,
            whole=whole,
        )

    def _local_timeouts(self, endpoint: Endpoint, whole: float) -> Timeouts:
        """A machine of one's own may read a long prompt for an hour without a word."""
        from hermes.providers.local.stalls import ActivityProbe, LocalStallPolicy

        pulse = ActivityProbe(self._http, endpoint)
        patience = LocalStallPolicy(pulse, self._world.clock, host=endpoint.host)
        return replace(LOCAL_TIMEOUTS, whole=whole, patience=patience)


def _unknown_price(_usage: Usage) -> None:
    """The price of a model that nobody has told."""
