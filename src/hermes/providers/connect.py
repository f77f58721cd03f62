"""Builds the provider stack for one endpoint."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import Value, replace
from hermes.core.ports import Provider
from hermes.core.world import World
from hermes.providers.completing import OUTPUT_CAP, CompletingProvider
from hermes.providers.direct import EndpointProvider
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import LOCAL_TIMEOUTS, HttpClient, Timeouts
from hermes.providers.keys import Credential, KeyPool
from hermes.providers.learned import WindowLearner
from hermes.providers.pooled import KeyRotatingProvider
from hermes.providers.profile import MarkLife, MarkStyle
from hermes.providers.repairs import AdaptiveProfile
from hermes.providers.retrying import RetryingProvider
from hermes.providers.ways import EAGER_ATTEMPTS, RetryVariants

RequestWrapper = Callable[[Provider, Endpoint], Provider]
"""Wraps every single request, including retries and other keys: the meter."""


class ConnectSettings(Value):
    """User settings for requests. `marks=None` leaves cache marks to the model's profile;
    `timeouts=None` chooses by whether the endpoint is local."""

    attempts: int = 3
    silences: int = 5
    output_cap: int = OUTPUT_CAP
    marks: MarkStyle | None = None
    mark_life: MarkLife = "5m"
    timeouts: Timeouts | None = None


class KeyChoice:
    """Several keys for one endpoint; `at` returns the endpoint with one of them."""

    def __init__(self, keys: KeyPool, at: Callable[[Credential], Endpoint]) -> None:
        self.keys = keys
        self.at = at


def build_variants(
    endpoint: Endpoint,
    *,
    http: HttpClient,
    world: World,
    settings: ConnectSettings | None = None,
    gate: RequestWrapper | None = None,
    ring: KeyChoice | None = None,
    lessons: WindowLearner | None = None,
) -> RetryVariants:
    """The stack, innermost first: the request, truncation checks for local servers, tool calls in
    text, the meter, key rotation, retries, completion. Both variants share encoded messages."""
    settings = settings or ConnectSettings()
    profile = endpoint.profile
    if settings.marks is not None:
        profile = replace(profile, marks=settings.marks)
    fit = AdaptiveProfile(profile)

    def build(target: Endpoint) -> Provider:
        timeouts = settings.timeouts or (LOCAL_TIMEOUTS if target.is_local else Timeouts())
        provider: Provider = EndpointProvider(
            target,
            http=http,
            clock=world.clock,
            fit=fit,
            timeouts=timeouts,
            life=settings.mark_life,
        )
        if target.is_local:
            provider = _wrap_local(provider, target, http, lessons)
        if profile.tool_calls:
            provider = _wrap_text_calls(provider, profile.tool_calls)
        return gate(provider, target) if gate is not None else provider

    inner = (
        build(endpoint)
        if ring is None
        else KeyRotatingProvider(ring.keys, lambda key: build(ring.at(key)))
    )

    def complete(retrying: RetryingProvider) -> Provider:
        return CompletingProvider(retrying, world, output_cap=settings.output_cap)

    attempts, silences = settings.attempts, settings.silences
    return RetryVariants(
        eager=complete(
            RetryingProvider(
                inner, world, fit=fit, attempts=attempts, silences=silences, fewer=EAGER_ATTEMPTS
            )
        ),
        patient=complete(
            RetryingProvider(inner, world, fit=fit, attempts=attempts, silences=silences)
        ),
    )


def _wrap_local(
    inner: Provider, endpoint: Endpoint, http: HttpClient, lessons: WindowLearner | None
) -> Provider:
    from hermes.providers.local.provider import LocalServerProvider

    return LocalServerProvider(
        inner, endpoint, http=http, learned=lessons.record_reported if lessons else None
    )


def _wrap_text_calls(inner: Provider, style: str) -> Provider:
    # Imported on demand: few models need it, and it has many styles.
    from hermes.providers.textcalls.provider import TextCallProvider

    return TextCallProvider(inner, style)
