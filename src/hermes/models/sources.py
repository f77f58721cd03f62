"""Where the settings of `model` come from, so that what belongs together stays together."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.config.layers import SourcedValue, SourceKind
from hermes.config.load import Config

# Smaller is stronger. A variable that names the provider is weaker than the file.
_RANKS: dict[SourceKind, int] = {
    "flag": 0,
    "session": 1,
    "environment": 2,
    "env_file": 2,
    "file": 3,
    "default": 9,
}
WEAK = 4
NOBODY = 9


class ConfiguredValue(Value):
    """A value that somebody gave, how strong that is, and who it was."""

    value: str
    rank: int
    source: str


def all_values(config: Config, key: str) -> list[ConfiguredValue]:
    """Every value that was given for a key of `model`, strongest first."""
    found = config.explain(key)
    held = (SourcedValue(value=found.value, source=found.source), *found.shadows)
    return [
        ConfiguredValue(value=str(each.value), rank=_rank(key, each), source=str(each.source))
        for each in held
        if each.value and each.source.kind != "default"
    ]


def effective_value(config: Config, key: str) -> ConfiguredValue:
    """The value that counts; of rank NOBODY when there is none."""
    return next(
        iter(all_values(config, key)), ConfiguredValue(value="", rank=NOBODY, source="default")
    )


def provider_of_value(config: Config, key: str) -> str:
    """The provider that a key of `model` was written for: the one named in the same place or in
    a weaker one. An option for one run does not make another provider use a saved address."""
    rank = effective_value(config, key).rank
    named = (each.value for each in all_values(config, "model.provider") if each.rank >= rank)
    return next(named, "")


def _rank(key: str, held: SourcedValue) -> int:
    rank = _RANKS[held.source.kind]
    return WEAK if rank == 2 and key == "model.provider" else rank
