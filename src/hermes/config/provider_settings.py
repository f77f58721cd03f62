"""Settings of models, providers, budgets, image generation, web search and speech."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import JsonObject, Value
from hermes.config.schema import (
    SECRET,
    Count,
    Dollars,
    Effort,
    NonNegative,
    Positive,
    Seconds,
    Tokens,
)

ApiMode = Literal["", "chat_completions", "codex_responses", "anthropic_messages"]
PoolStrategy = Literal["fill_first", "round_robin", "least_used", "random"]


class ModelSettings(Value):
    """The main model. `model: NAME` is short for `model: {default: NAME}`."""

    default: Annotated[str, "Model name, as its provider spells it."] = ""
    provider: Annotated[str, "Provider; empty uses the best one that has a key."] = ""
    base_url: Annotated[str, "Base URL, for a custom provider."] = ""
    api_key: Annotated[str, SECRET, "API key; better kept in `.env`."] = ""
    api_keys: Annotated[tuple[str, ...], SECRET, "More API keys, used in rotation."] = ()
    extra_body: Annotated[JsonObject, "Fields added to each request of the main model."] = {}
    api_mode: Annotated[ApiMode, "Wire format; empty uses the provider's default."] = ""
    context_length: Annotated[
        Positive | None, "Context window in tokens; null uses the known value of the model."
    ] = None
    max_tokens: Annotated[
        Positive | None, "Maximum answer length in tokens; null uses the provider's default."
    ] = None
    ollama_num_ctx: Annotated[
        Positive | None, "Context window to request from Ollama; null requests the model's maximum."
    ] = None
    persist_switch_by_default: Annotated[bool, "`/model` also saves the choice."] = False


class ProviderModelSettings(Value):
    """Properties of one model of a provider."""

    context_length: Annotated[Positive | None, "Context window in tokens."] = None
    max_output_tokens: Annotated[Positive | None, "Maximum answer length in tokens."] = None
    timeout_seconds: Annotated[Seconds | None, "Request timeout, in seconds."] = None
    price_input: Annotated[NonNegative | None, "Dollars per million input tokens."] = None
    price_output: Annotated[NonNegative | None, "Dollars per million output tokens."] = None
    price_cache_read: Annotated[
        NonNegative | None, "Dollars per million tokens read from the cache."
    ] = None
    price_cache_write: Annotated[
        NonNegative | None, "Dollars per million tokens written to the cache."
    ] = None
    tool_calls: Annotated[
        str, "Format of tool calls written as text, e.g. `hermes`, `qwen`, `auto`."
    ] = ""
    vision: Annotated[bool | None, "The model accepts images."] = None


class ProviderSettings(Value):
    """A custom endpoint, or overrides of a built-in provider."""

    name: Annotated[str, "Display name."] = ""
    enabled: Annotated[bool, "Use this provider."] = True
    base_url: Annotated[str, "Base URL."] = ""
    api_key: Annotated[str, SECRET, "API key; better kept in `.env` and named by `key_env`."] = ""
    key_env: Annotated[str, "Variable that holds the API key."] = ""
    api_mode: Annotated[ApiMode, "Wire format."] = ""
    default_model: Annotated[str, "Model to use if none is named."] = ""
    request_timeout_seconds: Annotated[Seconds | None, "Request timeout, in seconds."] = None
    stale_timeout_seconds: Annotated[
        Seconds | None, "Seconds without content until a stream counts as stalled."
    ] = None
    extra_headers: Annotated[dict[str, str], SECRET, "Headers added to each request."] = {}
    extra_body: Annotated[JsonObject, "Fields added to each request."] = {}
    discover_models: Annotated[bool, "Query the endpoint for its models."] = True
    models: dict[str, ProviderModelSettings] = {}


class FallbackSettings(Value):
    """A model to use if the previous one fails."""

    provider: Annotated[str, "Provider."] = ""
    model: Annotated[str, "Model name, as that provider spells it."] = ""
    base_url: Annotated[str, "Base URL, for a custom provider."] = ""
    key_env: Annotated[str, "Variable that holds the API key."] = ""
    context_length: Annotated[Positive | None, "Context window in tokens."] = None


class RoutingSettings(Value):
    """Which upstream providers OpenRouter may use. No effect elsewhere."""

    sort: Annotated[
        Literal["", "price", "throughput", "latency"],
        "What to prefer when several providers offer a model.",
    ] = ""
    only: Annotated[tuple[str, ...], "Use only these providers."] = ()
    ignore: Annotated[tuple[str, ...], "Never use these providers."] = ()
    order: Annotated[tuple[str, ...], "Try these providers first, in this order."] = ()
    require_parameters: Annotated[
        bool, "Use only providers that support every parameter of a request."
    ] = False
    data_collection: Annotated[
        Literal["", "allow", "deny"], "Whether providers may store prompts."
    ] = ""
    zdr: Annotated[bool, "Use only providers with zero data retention."] = False


class OpenRouterSettings(Value):
    response_cache: Annotated[bool, "Let OpenRouter answer identical requests from its cache."] = (
        False
    )
    response_cache_ttl: Annotated[Positive, "Seconds until a cached answer expires."] = 300


class CooldownSettings(Value):
    """Cooldown of a key, in seconds, if the provider names no time."""

    rate_limit: Annotated[Seconds, "Cooldown after a rate limit."] = 3600
    billing: Annotated[Seconds, "Cooldown after a billing error."] = 86_400
    auth: Annotated[Seconds, "Cooldown after an authentication error."] = 300


class CapSettings(Value):
    """A limit in dollars, in tokens, or both."""

    usd: Annotated[Dollars | None, "Limit in dollars."] = None
    tokens: Annotated[
        Tokens | None, "Limit in tokens; also counts models without a known price."
    ] = None


class BudgetSettings(Value):
    """Spending limits of model calls. At a limit, Hermes pauses and asks."""

    day: CapSettings = CapSettings()
    month: CapSettings = CapSettings()
    person: Annotated[CapSettings, "Limit per person and day."] = CapSettings()
    job: Annotated[CapSettings, "Limit per session, including its sub-sessions."] = CapSettings()
    task: Annotated[CapSettings, "Limit per message."] = CapSettings()
    ask_seconds: Annotated[Seconds, "Seconds until an unanswered question counts as no."] = 600


class AuxiliaryTaskSettings(Value):
    """The model for one auxiliary task."""

    provider: Annotated[str, "Provider; `auto` chooses one, `main` uses the main model."] = "auto"
    model: Annotated[str, "Model name; empty uses a small model of the provider."] = ""
    base_url: Annotated[str, "Base URL of a separate endpoint."] = ""
    api_key: Annotated[str, SECRET, "API key of that endpoint."] = ""
    timeout: Annotated[Seconds | None, "Timeout of one call, in seconds."] = None
    reasoning_effort: Annotated[Effort, "Reasoning effort."] = ""
    extra_body: Annotated[JsonObject, "Fields added to each request."] = {}
    fallback_chain: Annotated[tuple[FallbackSettings, ...], "Fallback models."] = ()


class AuxiliarySettings(Value):
    """Models for auxiliary tasks. `auto` never uses a model that costs more than the main one."""

    transient_retries: Annotated[Count, "Number of retries after transient errors."] = 2
    vision: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    web_extract: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    compression: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    session_search: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    approval: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    title_generation: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    flush_memories: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    mcp: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    background_review: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    curator: AuxiliaryTaskSettings = AuxiliaryTaskSettings()
    planning: AuxiliaryTaskSettings = AuxiliaryTaskSettings(provider="main")
    goal: AuxiliaryTaskSettings = AuxiliaryTaskSettings()


class ImageModelSettings(Value):
    model: Annotated[str, "Model; empty uses the provider's first model."] = ""


class XaiImageSettings(Value):
    model: Annotated[str, "Model; empty uses the provider's first model."] = ""
    resolution: Annotated[Literal["1k", "2k"], "Image resolution."] = "1k"


class CompatibleImageSettings(Value):
    """A server with the OpenAI images API, for example LocalAI."""

    base_url: Annotated[str, "Base URL, up to `/v1`; setting it enables this provider."] = ""
    model: Annotated[str, "Model name; empty uses `image_gen.model`."] = ""
    size_by_aspect: Annotated[
        dict[str, str], "Sizes for `landscape`, `square`, `portrait`, such as `1536x1024`."
    ] = {}
    params: Annotated[JsonObject, "Fields added to each request."] = {}
    timeout: Annotated[Seconds | None, "Timeout of one image, in seconds."] = None


class ComfySettings(Value):
    """A ComfyUI server."""

    base_url: Annotated[str, "Base URL; setting it enables this provider."] = ""
    model: Annotated[str, "Checkpoint file name; empty uses the server's first checkpoint."] = ""
    workflow: Annotated[
        str, "Workflow in API format; {prompt}, {width}, {height} and {seed} are replaced."
    ] = ""
    negative_prompt: Annotated[str, "Negative prompt."] = ""
    steps: Annotated[Positive, "Sampling steps."] = 20


class WebUiSettings(Value):
    """A Stable Diffusion web UI (AUTOMATIC1111, Forge) started with `--api`."""

    base_url: Annotated[str, "Base URL; setting it enables this provider."] = ""
    model: Annotated[str, "Checkpoint title; empty keeps the loaded checkpoint."] = ""
    negative_prompt: Annotated[str, "Negative prompt."] = ""
    steps: Annotated[Positive, "Sampling steps."] = 20
    params: Annotated[JsonObject, "Fields added to each request, such as `sampler_name`."] = {}


class ImageGenSettings(Value):
    """Image generation. The tool is offered only if a provider is configured."""

    provider: Annotated[str, "Provider; empty uses the first that has a key."] = ""
    model: Annotated[str, "Model; ignored if the provider has no model of this name."] = ""
    timeout: Annotated[Seconds, "Timeout of one image, in seconds."] = 300
    max_parallel_requests: Annotated[
        Positive, "Maximum number of images generated in parallel."
    ] = 4
    cache_days: Annotated[Positive, "Days that images are kept in `cache/images`."] = 7
    cache_mb: Annotated[
        Positive, "Maximum size of `cache/images` in MB; the oldest are deleted first."
    ] = 500
    openai: ImageModelSettings = ImageModelSettings()
    openai_codex: ImageModelSettings = ImageModelSettings()
    xai: XaiImageSettings = XaiImageSettings()
    fal: ImageModelSettings = ImageModelSettings()
    openrouter: ImageModelSettings = ImageModelSettings()
    replicate: ImageModelSettings = ImageModelSettings()
    openai_compatible: CompatibleImageSettings = CompatibleImageSettings()
    comfyui: ComfySettings = ComfySettings()
    sdwebui: WebUiSettings = WebUiSettings()
    options: Annotated[
        dict[str, JsonObject], "Options of plugin providers: `my-backend: {model: …}`."
    ] = {}


SoundFormat = Literal["", "wav", "mp3", "ogg", "flac"]


class WebSettings(Value):
    """Web search and page reading. Both work without a key."""

    backend: Annotated[
        str, "Service or plugin; empty uses the first one with a key, else what needs none."
    ] = ""
    search_backend: Annotated[str, "Service or plugin for searches only."] = ""
    extract_backend: Annotated[
        str, "Service or plugin for pages only; `built-in` fetches pages directly."
    ] = ""
    extract_summarize: Annotated[bool, "Let a side model summarize long pages."] = False
    respect_robots: Annotated[bool, "Do not read pages that robots.txt excludes."] = True


class TtsSettings(Value):
    """Text to speech."""

    provider: Annotated[str, "Provider; empty uses the first available."] = ""
    voice: Annotated[str, "Voice; empty uses the provider's default."] = ""
    model: Annotated[str, "Model; empty uses the provider's default."] = ""
    speed: Annotated[Seconds, "Speaking rate; 1 is normal."] = 1.0
    format: Annotated[SoundFormat, "File format; empty uses the provider's default."] = ""


class SttSettings(Value):
    """Speech to text."""

    provider: Annotated[str, "Provider; empty uses the first available."] = ""
    language: Annotated[str, "Spoken language, such as `en`; empty detects it."] = ""
    model: Annotated[str, "Model; empty uses the provider's default."] = ""
