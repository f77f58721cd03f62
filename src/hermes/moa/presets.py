"""The presets of the mixture of agents: which models can be used, and what a question costs."""

from __future__ import annotations

from hermes.codec.json import plain
from hermes.codec.values import JsonObject, Value
from hermes.config.edit import write_settings
from hermes.config.load import Config
from hermes.config.migrations import REMOVED
from hermes.config.moa_settings import MoaPresetSettings, MoaSettings
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.core.messages import Usage
from hermes.models.models import Models, ref_of
from hermes.models.names import near_names

# A typical question and answer, for estimates.
TYPICAL = Usage(input=1_000, output=1_500, requests=1)


class ModelStatus(Value):
    """A model of a preset; `problem` says why it cannot be used."""

    model: str
    provider: str
    problem: str = ""
    # The cost of a typical answer in dollars; None without a known price.
    cost: float | None = None


class PresetStatus(Value):
    """The models of a preset and whether they can be used."""

    name: str
    references: tuple[ModelStatus, ...]
    aggregator: ModelStatus
    needed: int

    @property
    def usable(self) -> bool:
        ready = [each for each in self.references if not each.problem]
        return len(ready) >= self.needed and not self.aggregator.problem

    @property
    def cost(self) -> float | None:
        """The cost of a typical question; None if the price of a model is not known."""
        asked = [each.cost for each in (*self.references, self.aggregator) if not each.problem]
        known = [cost for cost in asked if cost is not None]
        return sum(known) if asked and len(known) == len(asked) else None


def find_preset(settings: MoaSettings, name: str = "") -> tuple[str, MoaPresetSettings]:
    """Return a preset with its name; the default one without a name. Raise NotFound."""
    name = name or settings.default_preset
    if preset := settings.presets.get(name):
        return name, preset
    near = near_names(name, settings.presets)
    hint = f"did you mean {near[0]}?" if near else "`hermes moa configure` creates one."
    raise NotFound(f"There is no preset {name!r} for a mixture of agents; {hint}")


def inspect_preset(models: Models, name: str, preset: MoaPresetSettings) -> PresetStatus:
    """Check the models of a preset. Makes no requests."""
    return PresetStatus(
        name=name,
        references=tuple(_status(models, each) for each in preset.reference_models),
        aggregator=_status(models, preset.aggregator),
        needed=preset.min_successful_references,
    )


def _status(models: Models, entry: FallbackSettings) -> ModelStatus:
    ref = ref_of(entry)
    try:
        models.check(ref)
    except HermesError as error:
        return ModelStatus(model=entry.model, provider=ref.provider, problem=str(error))
    endpoint = models.find_endpoint(entry.model, ref.provider)
    price = endpoint.profile.price if endpoint is not None else None
    cost = price.cost(TYPICAL) if price is not None else None
    return ModelStatus(model=entry.model, provider=ref.provider, cost=cost)


def save_preset(config: Config, name: str, preset: MoaPresetSettings) -> None:
    """Save the models of a preset; its other settings stay as they are."""
    if not preset.reference_models or not preset.aggregator.model:
        raise UsageError("A preset needs at least one --reference and an --aggregator.")
    if preset.min_successful_references > len(preset.reference_models):
        raise UsageError("--min-success is larger than the number of reference models.")
    path = ("moa", "presets", name)
    write_settings(
        config.home,
        {
            (*path, "reference_models"): [_entry(each) for each in preset.reference_models],
            (*path, "aggregator"): _entry(preset.aggregator),
            (*path, "min_successful_references"): preset.min_successful_references,
        },
    )


def delete_preset(config: Config, name: str) -> None:
    find_preset(config.settings.moa, name)
    write_settings(config.home, {("moa", "presets", name): REMOVED})


def _entry(entry: FallbackSettings) -> JsonObject:
    return {key: value for key, value in plain(entry).items() if value}
