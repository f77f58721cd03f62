"""Why this model answers and no other: the winner, what it is made of, and whom it hides."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.config.load import Config
from hermes.core.errors import HermesError
from hermes.models.model_ref import IN_PROCESS, ModelRef, all_values
from hermes.models.models import KEY_AS_NAME, Models

NOTHING = (
    "Nothing is configured: a server on this machine is looked for, then a model file, then the "
    "offline assistant answers."
)
KEYS = ("model.default", "model.provider", "model.base_url")


class CandidateReason(Value):
    """A provider that could answer. `problem` says why it cannot be used as things are."""

    provider: str
    model: str
    why: str
    host: str = ""
    wire: str = ""
    has_key: bool = False
    window: int = 0
    problem: str = ""


class ChoiceExplanation(Value):
    """`winner` answers; `shadowed` would if it did not. `said` are the values behind it: key,
    value and source, strongest first."""

    winner: CandidateReason | None
    shadowed: tuple[CandidateReason, ...] = ()
    said: tuple[tuple[str, str, str], ...] = ()


def explain_choice(models: Models, config: Config) -> ChoiceExplanation:
    """Nobody is contacted."""
    found = models.resolver.candidates()
    reasons = [_reason(models, each.provider, each.model, each.why) for each in found]
    said = tuple(
        (key, "***" if models.is_secret(each.value) else each.value, each.source)
        for key in KEYS
        for each in all_values(config, key)
    )
    if not reasons:
        return ChoiceExplanation(winner=None, said=said)
    return ChoiceExplanation(winner=reasons[0], shadowed=tuple(reasons[1:]), said=said)


def _reason(models: Models, provider: str, model: str, why: str) -> CandidateReason:
    if models.is_secret(model):
        return CandidateReason(provider=provider, model="***", why=why, problem=KEY_AS_NAME)
    if provider in IN_PROCESS:
        return CandidateReason(provider=provider, model=model, why=why)
    try:
        place = models.resolver.places.get(provider)
        wish = ModelRef(provider=provider, model=model or place.default_model)
        endpoint = models.resolver.endpoint(wish)
    except HermesError as error:
        return CandidateReason(provider=provider, model=model, why=why, problem=str(error))
    return CandidateReason(
        provider=endpoint.name,
        model=endpoint.model,
        why=why,
        host=endpoint.host,
        wire=endpoint.wire,
        has_key=bool(endpoint.key),
        window=endpoint.profile.window,
    )
