"""From an endpoint to a provider: the wire format, made patient and complete."""

from __future__ import annotations

from hermes.codec.values import Value, replace
from hermes.core.ports import Provider
from hermes.core.world import World
from hermes.providers.completing import OUTPUT_CAP, Completing
from hermes.providers.direct import Direct
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import LOCAL_TIMEOUTS, Http, Timeouts
from hermes.providers.profile import MarkLife, MarkStyle
from hermes.providers.repairs import Fit
from hermes.providers.retrying import Retrying


class ConnectSettings(Value):
    """What users may set about the way to a model. `marks` None leaves cache marks to the model's
    profile; time-outs None are those that suit the place of the endpoint."""

    attempts: int = 3
    output_cap: int = OUTPUT_CAP
    marks: MarkStyle | None = None
    mark_life: MarkLife = "5m"
    timeouts: Timeouts | None = None


def connect(
    endpoint: Endpoint,
    *,
    http: Http,
    world: World,
    settings: ConnectSettings | None = None,
) -> Provider:
    """A provider for one session. `http` is shared by all of them."""
    settings = settings or ConnectSettings()
    profile = endpoint.profile
    if settings.marks is not None:
        profile = replace(profile, marks=settings.marks)
    fit = Fit(profile)
    direct = Direct(
        endpoint,
        http=http,
        clock=world.clock,
        fit=fit,
        timeouts=settings.timeouts or (LOCAL_TIMEOUTS if endpoint.is_local else Timeouts()),
        life=settings.mark_life,
    )
    patient = Retrying(direct, world, fit=fit, attempts=settings.attempts)
    return Completing(patient, world, output_cap=settings.output_cap)
