"""References to models, and where their settings come from."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.config.layers import SourcedValue, SourceKind
from hermes.config.load import Config

OFFLINE = "offline"
OFFLINE_MODEL = "offline-assistant"
OFFLINE_WINDOW = 1_000_000
OFFLINE_LINE = (
    "No model is configured: the offline assistant answers plain requests; it is not a language "
    "model. For a real one: set OPENAI_API_KEY (and OPENAI_BASE_URL), start Ollama, or run "
    "`hermes model install smollm2`."
)
EMBEDDED = "embedded"
CUSTOM = "custom"
IN_PROCESS = (EMBEDDED, OFFLINE)


class ModelChoice(Value):
    """A model and who serves it. `line` is what the person should know about the choice;
    `reduced` means a model too small for tools and long instructions."""

    model: str
    provider: str
    window: int
    line: str = ""
    reduced: bool = False


class ModelRef(Value):
    """What somebody asks for; what is empty follows from the provider and the settings. `tier` is
    the service tier; there, an empty one asks for none."""

    provider: str
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    key_env: str = ""
    context_length: int | None = None
    extra_body: dict[str, object] = {}
    tier: str | None = None


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
