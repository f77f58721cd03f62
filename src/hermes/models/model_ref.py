"""References to models, and the settings that choose a model, with their sources."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.config.layers import SourcedValue, SourceKind
from hermes.config.load import Config

OFFLINE = "offline"
OFFLINE_MODEL = "offline-assistant"
OFFLINE_WINDOW = 1_000_000
# Other names that are accepted for its model.
OFFLINE_ALIASES = ("offline", "assistant")
NO_MODEL = "no model is configured"
OFFLINE_LINE = (
    "No model is configured: the offline assistant answers simple requests; it is not a language "
    "model. To use one, run `hermes setup`, which finds keys, servers and model files, or set "
    "OPENAI_API_KEY (and OPENAI_BASE_URL)."
)
EMBEDDED = "embedded"
CUSTOM = "custom"
IN_PROCESS = (EMBEDDED, OFFLINE)


class ModelChoice(Value):
    """A model and its provider."""

    model: str
    provider: str
    window: int
    line: str = ""  # a notice for the user about the choice
    why: str = ""  # what chose it, such as "command line"
    reduced: bool = False  # too small for tools and long instructions


class ModelRef(Value):
    """A requested model; empty fields follow from the provider and the settings. `tier` is the
    service tier: None follows the settings, "" asks for none."""

    provider: str
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    key_env: str = ""
    context_length: int | None = None
    extra_body: dict[str, object] = {}
    tier: str | None = None


# Lower ranks win. An environment variable that names the provider is weaker than the file.
_RANKS: dict[SourceKind, int] = {
    "flag": 0, "session": 1, "environment": 2, "env_file": 2, "file": 3, "default": 9,
}  # fmt: skip
BELOW_FILE = 4
UNSET = 9


class ConfiguredValue(Value):
    """A value of a setting, with its precedence rank and its source."""

    value: str
    rank: int
    source: str


def all_values(config: Config, key: str) -> list[ConfiguredValue]:
    """Return every value given for a `model` setting, strongest first."""
    found = config.explain(key)
    values: list[ConfiguredValue] = []
    for each in (SourcedValue(value=found.value, source=found.source), *found.shadows):
        if each.value and each.source.kind != "default":
            rank = _RANKS[each.source.kind]
            rank = BELOW_FILE if rank == 2 and key == "model.provider" else rank
            value, source = str(each.value), str(each.source)
            values.append(ConfiguredValue(value=value, rank=rank, source=source))
    return values


def effective_value(config: Config, key: str) -> ConfiguredValue:
    """Return the value that takes effect; rank UNSET when there is none."""
    unset = ConfiguredValue(value="", rank=UNSET, source="default")
    return next(iter(all_values(config, key)), unset)


def provider_of_value(config: Config, key: str) -> str:
    """Return the provider that a `model` setting belongs to: the one named at the same level or a
    weaker one. An option for one run does not make another provider use a saved address."""
    rank = effective_value(config, key).rank
    named = (each.value for each in all_values(config, "model.provider") if each.rank >= rank)
    return next(named, "")
