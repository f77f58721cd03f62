"""Builds the provider for an endpoint: keys, timeouts, metering, redaction and advice on errors."""

from __future__ import annotations

from functools import partial

from hermes.codec.ttl_cache import TtlCache
from hermes.codec.values import replace
from hermes.config.settings import Settings
from hermes.core.errors import ProviderError
from hermes.core.messages import Usage
from hermes.core.metering import Metered
from hermes.core.ports import Meter, Middleware, Provider, wrap_provider
from hermes.core.world import World
from hermes.credentials.accounts import Accounts
from hermes.models.in_process import InProcessModels
from hermes.models.model_ref import ModelRef
from hermes.models.names import ProviderEntry, near_names
from hermes.models.resolver import Resolver
from hermes.net.http import LOCAL_TIMEOUTS, HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint, may_send
from hermes.providers.fallback import ErrorAdvisor
from hermes.providers.keys import Credential, SingleKey
from hermes.providers.pipeline import KeyChoice, build_pipeline
from hermes.providers.profile import FREE, ModelProfile
from hermes.providers.retry import RetryMode

_IN_PROCESS = ModelProfile(price=FREE)
SPARE = "add a fallback model with `hermes fallback add NAME`"
CERTIFICATES = "`hermes config set network.ca_bundle FILE`"
TOOLS = (
    "Check that the server was started with tool support (vLLM: --enable-auto-tool-choice "
    "--tool-call-parser …; llama.cpp: --jinja), or try another model with /model."
)


def next_steps(resolver: Resolver, ref: ModelRef, endpoint: Endpoint, error: ProviderError) -> str:
    """Return the two most useful steps after an error of this endpoint; "" where there is no
    specific advice."""
    entry = resolver.providers.get(endpoint.name)
    match error.reason:
        case "auth" | "auth_permanent":
            return f"{_key_step(resolver, ref, endpoint, entry)}, or {SPARE}."
        case "billing":
            at = f" at {entry.vendor.signup}" if entry.vendor.signup else ""
            return f"Add credits{at}, or {SPARE}."
        case "rate_limit" | "upstream_rate_limit":
            return f"{_wait(error.retry_after)}, or {SPARE}."
        case "model_not_found":
            return _model_step(resolver, endpoint, entry)
        case "timeout" if endpoint.is_local:
            port = endpoint.url.partition("://")[2].partition("/")[0]
            return f"Start the server at {port}, or choose another model with /model."
        case "timeout":
            proxy = "`hermes config explain network.proxy`"
            return f"Check the network and the proxy ({proxy}), or {SPARE}."
        case "ssl_cert_verification":
            return f"Configure your network's CA certificates: {CERTIFICATES}."
        case "format_error" if endpoint.is_local:
            return TOOLS
        case _:
            return ""


def _key_step(resolver: Resolver, ref: ModelRef, endpoint: Endpoint, entry: ProviderEntry) -> str:
    if variable := resolver.key_source(ref):
        return f"Correct {variable} (`hermes config set {variable} …`)"
    if entry.vendor.login != "api_key" or not entry.vendor.keys:
        return f"Log in again with `hermes auth add {entry.name}`"
    if endpoint.key:
        return f"Correct the key of {entry.name} in config.yaml"
    return f"Set a key for {entry.name} (providers.{entry.name}.key_env)"


def _model_step(resolver: Resolver, endpoint: Endpoint, entry: ProviderEntry) -> str:
    near = near_names(endpoint.model, tuple(resolver.known_models(entry)))
    near = tuple(name for name in near if name != endpoint.model)
    if near:
        return f"Similar: {', '.join(near)}; choose one with /model or `hermes model set`."
    return (
        f"`hermes model list {entry.name}` lists its models; "
        "choose one with /model or `hermes model set`."
    )


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "Wait a moment"
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
        in_process: InProcessModels,
        redact: Middleware,
    ) -> None:
        self._settings = settings
        self._world = world
        self._http = http
        self._resolver = resolver
        self._accounts = accounts
        self._in_process = in_process
        self._redact = redact
        # Provider name -> whether the provider has a single key.
        self.cache: TtlCache[bool] = TtlCache()

    def build(
        self,
        ref: ModelRef,
        endpoint: Endpoint | None,
        meter: Meter,
        *,
        cause: str,
        attempts: int | None = None,
        mode: RetryMode | None = None,
    ) -> Provider:
        """Build the whole stack of one model; `build_pipeline` lists its layers. Without an
        endpoint it is an in-process model: free, but metered too. With `attempts` None, retries
        follow the settings for chats."""
        if endpoint is None:
            free = self._metering(meter, cause, ref.model, ref.provider, _IN_PROCESS)
            local = self._in_process.provider(ref.model, ref.provider)
            return wrap_provider((self._redact, free), local)
        window_learner = self._resolver.window_learner(endpoint)
        advice = partial(next_steps, self._resolver, ref, endpoint)

        return build_pipeline(
            endpoint,
            http=self._http,
            world=self._world,
            redact=self._redact,
            advise=lambda inner: ErrorAdvisor(inner, endpoint, advice, window_learner),
            meter=lambda target: self._metering(
                meter, cause, target.model, target.name, target.profile
            ),
            keys=self._key_choice(endpoint, ref),
            window_learner=window_learner,
            attempts=attempts or self._settings.agent.api_max_retries,
            max_timeouts=self._settings.network.stream_stale_giveup,
            mode=mode,
            cache_ttl=self._settings.prompt_caching.cache_ttl,
            timeouts=self._timeouts(endpoint),
        )

    def _metering(
        self, meter: Meter, cause: str, model: str, provider: str, profile: ModelProfile
    ) -> Middleware:
        price = profile.price
        return lambda inner: Metered(
            inner,
            meter,
            world=self._world,
            model=model,
            provider=provider,
            cost=price.cost if price is not None else _unknown_price,
            max_output=profile.max_output,
            cause=cause,
        )

    def _key_choice(self, endpoint: Endpoint, ref: ModelRef) -> KeyChoice | None:
        """Return a choice among several keys or a login; None if the endpoint's own key is the only
        one."""
        if ref.base_url or ref.api_key or ref.key_env:
            return None
        entry = self._resolver.providers.get(endpoint.name)
        if self.cache.peek(entry.name):
            return None
        keys = self._accounts.keys_for(entry.name, entry.vendor)
        if self.cache.put(entry.name, isinstance(keys, SingleKey)):
            return None
        own_source = self._resolver.url_source(ref)

        def at(key: Credential) -> Endpoint:
            target = key.at(endpoint)
            allowed = may_send(
                self._resolver.catalogue,
                entry.vendor,
                target.url,
                key_source=key.source,
                url_source="config" if key.url else own_source,
            )
            return target if allowed else replace(target, key="")

        return KeyChoice(keys, at)

    def _timeouts(self, endpoint: Endpoint) -> Timeouts:
        entry, network = self._resolver.providers.get(endpoint.name), self._settings.network
        own, model = entry.own, entry.own.models.get(endpoint.model)
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
        """Return the timeouts of a local server, which may process a long prompt for an hour
        without sending a byte."""
        from hermes.providers.local_server import ActivityProbe, LocalStallPolicy

        probe = ActivityProbe(self._http, endpoint)
        policy = LocalStallPolicy(probe, self._world.clock, host=endpoint.host)
        return replace(LOCAL_TIMEOUTS, whole=whole, stall_policy=policy)


def _unknown_price(_usage: Usage) -> None:
    """Act as the cost function of a model without a known price."""
