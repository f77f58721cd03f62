"""What was chosen to answer, and the names of those that need nobody else."""

from __future__ import annotations

from hermes.codec.values import Value

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
