"""Settings of the mixture of agents."""

from __future__ import annotations

from typing import Annotated

from hermes.codec.values import Value
from hermes.config.provider_settings import FallbackSettings
from hermes.config.schema import Count, NonNegative, Positive, Seconds


class MoaPresetSettings(Value):
    """The models of a mixture of agents. Each entry of `reference_models` names a model that
    answers the question; `aggregator` names the model that combines the answers."""

    reference_models: Annotated[
        tuple[FallbackSettings, ...], "Models that answer the question, each on its own."
    ] = ()
    aggregator: Annotated[FallbackSettings, "Model that combines the answers."] = FallbackSettings()
    reference_temperature: Annotated[NonNegative, "Temperature of the reference models."] = 0.6
    aggregator_temperature: Annotated[NonNegative, "Temperature of the aggregator."] = 0.4
    max_tokens: Annotated[Positive, "Maximum length of each answer, in tokens."] = 32_000
    min_successful_references: Annotated[
        Positive, "Number of reference models that must answer."
    ] = 1
    max_retries: Annotated[Count, "Retries of a failed request."] = 3
    timeout: Annotated[Seconds, "Timeout of each model, in seconds."] = 300


class MoaSettings(Value):
    """Mixture of agents: several models answer, one combines the answers."""

    default_preset: Annotated[str, "Preset to use if none is named."] = "default"
    presets: dict[str, MoaPresetSettings] = {}
    save_traces: Annotated[
        bool, "Write every question and all answers to `moa-traces/` in the home."
    ] = False
