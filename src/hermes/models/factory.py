"""Builds the provider for an endpoint: keys, timeouts, metering, redaction, advice on errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import replace
from hermes.config.settings import Settings
from hermes.core.errors import ProviderError
from hermes.core.messages import Usage
from hermes.core.metering import Metered
from hermes.core.ports import Meter, Provider
from hermes.core.world import World
from hermes.credentials.accounts import Accounts
from hermes.models.model_ref import ModelRef
from hermes.models.names import ProviderEntry, near_names
from hermes.models.resolver import Resolver
from hermes.net.http import LOCAL_TIMEOUTS, HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint, may_send
from hermes.providers.fallback import ErrorAdvisor
from hermes.providers.keys import Credential, SingleKey
from hermes.providers.pipeline import ConnectSettings, KeyChoice, RequestWrapper, build_variants
from hermes.providers.profile import FREE
from hermes.providers.retry import RetryVariants

SPARE = "name a spare model with `hermes fallback add NAME`"
CERTIFICATES = "`hermes config set network.ca_bundle FILE`"
TOOLS = (
    "Check that it was started for tools (vLLM: --enable-auto-tool-choice --tool-call-parser …; "
    "llama.cpp: --jinja), or try another model with /model."
)


class ErrorAdviser:
    """For one endpoint. `key` tells the variable or file that its key came from, "" if unknown; it
    is asked when advice is needed, which is seldom."""

    def __init__(
        self, resolver: Resolver, place: ProviderEntry, endpoint: Endpoint, key: Callable[[], str]
    ) -> None:
        self._resolver = resolver
        self._place = place
        self._endpoint = endpoint
        self._key = key

    def __call__(self, error: ProviderError) -> str:
        """The two most useful steps; "" where there is nothing better to say than usual."""
        match error.reason:
            case "auth" | "auth_permanent":
                return f"{self._key_step()}, or {SPARE}."
            case "billing":
                where = f" at {self._place.vendor.signup}" if self._place.vendor.signup else ""
                return f"Add credits{where}, or {SPARE}."
            case "rate_limit" | "upstream_rate_limit":
                return f"{_wait(error.retry_after)}, or {SPARE}."
            case "model_not_found":
                return self._model_step()
            case "timeout" if self._endpoint.is_local:
                port = self._endpoint.url.partition("://")[2].partition("/")[0]
                return f"Check that the server at {port} runs, or choose another model with /model."
            case "timeout":
                proxy = "`hermes config explain network.proxy`"
                return f"Check the network and the proxy ({proxy}), or {SPARE}."
            case "ssl_cert_verification":
                return f"Name the certificates of your network: {CERTIFICATES}."
            case "format_error" if self._endpoint.is_local:
                return TOOLS
            case _:
                return ""

    def _key_step(self) -> str:
        if key := self._key():
            return f"Correct {key} (`hermes config set {key} …`)"
        vendor = self._place.vendor
        if vendor.login != "api_key" or not vendor.keys:
            return f"Log in again with `hermes auth add {self._place.name}`"
        if self._endpoint.key:
            return f"Correct the key of {self._place.name} in config.yaml"
        return f"Give {self._place.name} a key (providers.{self._place.name}.key_env)"

    def _model_step(self) -> str:
        near = near_names(self._endpoint.model, tuple(self._resolver.known_models(self._place)))
        near = tuple(name for name in near if name != self._endpoint.model)
        if near:
            return f"Near: {', '.join(near)}; choose one with /model or `hermes model set`."
        return (
            f"`hermes model list {self._place.name}` shows what it has; "
            "choose one with /model or `hermes model set`."
        )


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "Wait a little"
    if seconds >= 120:
        return f"Wait {seconds / 60:.0f} minutes"
    return f"Wait {seconds:.0f} s"


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
