"""Explains which model answers: the winner, the values that chose it, and the candidates it
overrides."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.config.load import Config
from hermes.core.errors import HermesError
from hermes.models.model_ref import IN_PROCESS, ModelRef, all_values
from hermes.models.models import KEY_AS_NAME, Models

NOTHING = (
    "Nothing is configured: Hermes looks for a server on this machine, then for a model file, then "
    "uses the offline assistant."
)
KEYS = ("model.default", "model.provider", "model.base_url")


class CandidateReason(Value):
    """A provider that could answer. `problem` says why it cannot be used at present."""

    provider: str
    model: str
    why: str
    host: str = ""
    wire: str = ""
    has_key: bool = False
    window: int = 0
    problem: str = ""


class ChoiceExplanation(Value):
    """`winner` answers; `shadowed` are the candidates after it. `said` lists the settings behind
    the choice as (key, value, source), strongest first."""

    winner: CandidateReason | None
    shadowed: tuple[CandidateReason, ...] = ()
    said: tuple[tuple[str, str, str], ...] = ()


def explain_choice(models: Models, config: Config) -> ChoiceExplanation:
    """Makes no requests."""
    candidates = models.resolver.candidates()
    reasons = [_reason(models, each.provider, each.model, each.why) for each in candidates]
    values = tuple(
        (key, "***" if models.is_secret(each.value) else each.value, each.source)
        for key in KEYS
        for each in all_values(config, key)
    )
    if not reasons:
        return ChoiceExplanation(winner=None, said=values)
    return ChoiceExplanation(winner=reasons[0], shadowed=tuple(reasons[1:]), said=values)


def _reason(models: Models, provider: str, model: str, why: str) -> CandidateReason:
    if models.is_secret(model):
        return CandidateReason(provider=provider, model="***", why=why, problem=KEY_AS_NAME)
    if provider in IN_PROCESS:
        return CandidateReason(provider=provider, model=model, why=why)
    try:
        entry = models.resolver.providers.get(provider)
        ref = ModelRef(provider=provider, model=model or entry.default_model)
        endpoint = models.resolver.endpoint(ref)
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
