"""From an endpoint to a provider: the wire format, metered, made patient and complete."""

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
"""What every single request passes, retries and other keys included: the meter."""


class ConnectSettings(Value):
    """What users may set about the way to a model. `marks` None leaves cache marks to the model's
    profile; time-outs None are those that suit the place of the endpoint."""

    attempts: int = 3
    silences: int = 5
    output_cap: int = OUTPUT_CAP
    marks: MarkStyle | None = None
    mark_life: MarkLife = "5m"
    timeouts: Timeouts | None = None


class KeyRing:
    """Several keys for one endpoint; `at` is the endpoint asked with one of them."""

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
    """Innermost first: the request itself, a watch over servers of one's own, calls written as
    text, the meter, the choice of a key, patience, completeness. Both ways share what they have
    encoded."""
    settings = settings or ConnectSettings()
    profile = endpoint.profile
    if settings.marks is not None:
        profile = replace(profile, marks=settings.marks)
    fit = Fit(profile)

    def ask(at: Endpoint) -> Provider:
        timeouts = settings.timeouts or (LOCAL_TIMEOUTS if at.is_local else Timeouts())
        asking: Provider = Direct(
            at, http=http, clock=world.clock, fit=fit, timeouts=timeouts, life=settings.mark_life
        )
        if at.is_local:
            asking = _watched(asking, at, http, lessons)
        if profile.tool_calls:
            asking = _reading_text(asking, profile.tool_calls)
        return gate(asking, at) if gate is not None else asking

    inner = ask(endpoint) if ring is None else Pooled(ring.keys, lambda key: ask(ring.at(key)))

    def whole(patient: Retrying) -> Provider:
        return Completing(patient, world, output_cap=settings.output_cap)

    attempts, silences = settings.attempts, settings.silences
    return Way(
        eager=whole(
            Retrying(inner, world, fit=fit, attempts=attempts, silences=silences, fewer=EAGER)
        ),
        patient=whole(Retrying(inner, world, fit=fit, attempts=attempts, silences=silences)),
    )


def _watched(inner: Provider, at: Endpoint, http: Http, lessons: Lessons | None) -> Provider:
    from hermes.providers.local.provider import LocalServer

    return LocalServer(inner, at, http=http, learned=lessons.told if lessons else None)


def _reading_text(inner: Provider, style: str) -> Provider:
    # Few models need it, and it knows a good many styles.
    from hermes.providers.textcalls.provider import TextCalls

    return TextCalls(inner, style)
