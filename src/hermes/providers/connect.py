"""Builds the provider stack for one endpoint."""

from __future__ import annotations

from collections.abc import Callable

from hermes.codec.values import Value, replace
from hermes.core.ports import Provider
from hermes.core.world import World
from hermes.providers.completing import OUTPUT_CAP, Completing
from hermes.providers.direct import Direct
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import LOCAL_TIMEOUTS, Http, Timeouts
from hermes.providers.keys import Credential, Keys
from hermes.providers.learned import Lessons
from hermes.providers.pooled import Pooled
from hermes.providers.profile import MarkLife, MarkStyle
from hermes.providers.repairs import Fit
from hermes.providers.retrying import Retrying
from hermes.providers.ways import EAGER, Way

Gate = Callable[[Provider, Endpoint], Provider]
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


class KeyRing:
    """Several keys for one endpoint; `at` returns the endpoint with one of them."""

    def __init__(self, keys: Keys, at: Callable[[Credential], Endpoint]) -> None:
        self.keys = keys
        self.at = at


def open_way(
    endpoint: Endpoint,
    *,
    http: Http,
    world: World,
    settings: ConnectSettings | None = None,
    gate: Gate | None = None,
    ring: KeyRing | None = None,
    lessons: Lessons | None = None,
) -> Way:
    """The stack, innermost first: the request, truncation checks for local servers, tool calls in
    text, the meter, key rotation, retries, completion. Both variants share encoded messages."""
    settings = settings or ConnectSettings()
    profile = endpoint.profile
    if settings.marks is not None:
        profile = replace(profile, marks=settings.marks)
    fit = Fit(profile)

    def build(target: Endpoint) -> Provider:
        timeouts = settings.timeouts or (LOCAL_TIMEOUTS if target.is_local else Timeouts())
        provider: Provider = Direct(
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

    inner = build(endpoint) if ring is None else Pooled(ring.keys, lambda key: build(ring.at(key)))

    def complete(retrying: Retrying) -> Provider:
        return Completing(retrying, world, output_cap=settings.output_cap)

    attempts, silences = settings.attempts, settings.silences
    return Way(
        eager=complete(
            Retrying(inner, world, fit=fit, attempts=attempts, silences=silences, fewer=EAGER)
        ),
        patient=complete(Retrying(inner, world, fit=fit, attempts=attempts, silences=silences)),
    )


def _wrap_local(
    inner: Provider, endpoint: Endpoint, http: Http, lessons: Lessons | None
) -> Provider:
    from hermes.providers.local.provider import LocalServer

    return LocalServer(inner, endpoint, http=http, learned=lessons.told if lessons else None)


def _wrap_text_calls(inner: Provider, style: str) -> Provider:
    # Imported on demand: few models need it, and it has many styles.
    from hermes.providers.textcalls.provider import TextCalls

    return TextCalls(inner, style)
