"""The settings about models: which one answers, who serves it, what it may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import JsonObject, Value
from hermes.config.kinds import Count, Effort, Positive, Price, Seconds
from hermes.config.schema import SECRET

ApiMode = Literal["", "chat_completions", "codex_responses", "anthropic_messages"]
PoolStrategy = Literal["fill_first", "round_robin", "least_used", "random"]


class ModelSettings(Value):
    """Which model answers. `model: NAME` is short for `model: {default: NAME}`."""

    default: Annotated[str, "Name of the model, as its provider spells it."] = ""
    provider: Annotated[str, "Who serves it; empty chooses by the keys that are there."] = ""
    base_url: Annotated[str, "Address of the endpoint, for a custom provider."] = ""
    api_key: Annotated[str, SECRET, "Key of the endpoint; better kept in `.env`."] = ""
    api_mode: Annotated[ApiMode, "Wire format; empty takes the provider's own."] = ""
    context_length: Annotated[
        Positive | None, "Context window in tokens; null takes what is known of the model."
    ] = None
    max_tokens: Annotated[
        Positive | None, "Longest answer in tokens; null leaves it to the provider."
    ] = None
    ollama_num_ctx: Annotated[
        Positive | None, "Window to ask an Ollama server for; null asks for what the model can."
    ] = None
    persist_switch_by_default: Annotated[bool, "`/model` also changes the saved choice."] = False


class ProviderModelSettings(Value):
    """What is known of one model of a provider."""

    context_length: Annotated[Positive | None, "Context window in tokens."] = None
    max_output_tokens: Annotated[Positive | None, "Longest answer in tokens."] = None
    timeout_seconds: Annotated[Seconds | None, "Longest request."] = None
    price_input: Annotated[Price | None, "Dollars per million prompt tokens."] = None
    price_output: Annotated[Price | None, "Dollars per million answer tokens."] = None
    price_cache_read: Annotated[Price | None, "Dollars per million cached prompt tokens."] = None
    price_cache_write: Annotated[Price | None, "Dollars per million tokens put into the cache."] = (
        None
    )
    tool_calls: Annotated[
        str, "How it writes tool calls as text, e.g. `hermes`, `qwen`, `auto`."
    ] = ""
    vision: Annotated[bool | None, "Whether it sees pictures."] = None


class ProviderSettings(Value):
    """An endpoint of your own, or other values for one that is built in."""

    name: Annotated[str, "How it is called on screens."] = ""
    enabled: Annotated[bool, "Whether it may be chosen."] = True
    base_url: Annotated[str, "Address of the endpoint."] = ""
    api_key: Annotated[str, SECRET, "Its key; better kept in `.env` and named by `key_env`."] = ""
    key_env: Annotated[str, "The variable that holds its key."] = ""
    api_mode: Annotated[ApiMode, "Its wire format."] = ""
    default_model: Annotated[str, "The model to use when none is named."] = ""
    request_timeout_seconds: Annotated[Seconds | None, "Longest request."] = None
    stale_timeout_seconds: Annotated[Seconds | None, "Longest silence within a stream."] = None
    extra_headers: Annotated[dict[str, str], SECRET, "Headers added to each request."] = {}
    extra_body: Annotated[JsonObject, "Fields added to each request."] = {}
    discover_models: Annotated[bool, "Ask the endpoint which models it has."] = True
    models: dict[str, ProviderModelSettings] = {}


class FallbackSettings(Value):
    """A model that goes on when the one before it cannot."""

    provider: Annotated[str, "Who serves it."] = ""
    model: Annotated[str, "Name of the model, as that provider spells it."] = ""
    base_url: Annotated[str, "Address of the endpoint, for a custom provider."] = ""
    key_env: Annotated[str, "The variable that holds its key."] = ""
    context_length: Annotated[Positive | None, "Context window in tokens."] = None


class RoutingSettings(Value):
    """Which upstream providers OpenRouter may use. No effect elsewhere."""

    sort: Annotated[Literal["", "price", "throughput", "latency"], "What to prefer."] = ""
    only: Annotated[tuple[str, ...], "The only ones to use."] = ()
    ignore: Annotated[tuple[str, ...], "Ones never to use."] = ()
    order: Annotated[tuple[str, ...], "Ones to try first, in this order."] = ()
    require_parameters: Annotated[bool, "Only ones that know every parameter of a request."] = False
    data_collection: Annotated[Literal["", "allow", "deny"], "Whether they may keep prompts."] = ""
    zdr: Annotated[bool, "Only ones that keep nothing at all."] = False


class OpenRouterSettings(Value):
    response_cache: Annotated[
        bool, "Let OpenRouter answer an identical request from its cache."
    ] = False
    response_cache_ttl: Annotated[Positive, "Seconds that such an answer stays good."] = 300


class CooldownSettings(Value):
    """How long a key rests when the provider names no time."""

    rate_limit: Annotated[Seconds, "After a rate limit."] = 3600
    billing: Annotated[Seconds, "After a billing error."] = 86_400
    auth: Annotated[Seconds, "After it was refused."] = 300


class CapSettings(Value):
    """A limit in dollars, in tokens, or both."""

    usd: Annotated[Price | None, "Dollars."] = None
    tokens: Annotated[Positive | None, "Tokens, also of models whose price is not known."] = None


class BudgetSettings(Value):
    """What model calls may cost. At a limit work pauses and asks."""

    day: CapSettings = CapSettings()
    month: CapSettings = CapSettings()
    person: Annotated[CapSettings, "For each person, on one day."] = CapSettings()
    job: Annotated[CapSettings, "For a session with all its sub-sessions."] = CapSettings()
    task: Annotated[CapSettings, "For the answer to one message."] = CapSettings()
    ask_seconds: Annotated[Seconds, "Seconds until an unanswered question counts as no."] = 600


class AuxiliaryTaskSettings(Value):
    """Which model does one kind of side work."""

    provider: Annotated[str, "Who serves it: `auto`, `main`, or a provider."] = "auto"
    model: Annotated[str, "Name of the model; empty takes a small one of that provider."] = ""
    base_url: Annotated[str, "Address of an endpoint of its own."] = ""
    api_key: Annotated[str, SECRET, "Key of that endpoint."] = ""
    timeout: Annotated[Seconds | None, "Seconds that a call may take."] = None
    reasoning_effort: Annotated[Effort, "How hard to think."] = ""
    extra_body: Annotated[JsonObject, "Fields added to each request."] = {}
    fallback_chain: Annotated[tuple[FallbackSettings, ...], "Models to try after it."] = ()


class AuxiliarySettings(Value):
    """Models for side work. `auto` never chooses a model that costs more than the main one."""

    transient_retries: Annotated[Count, "Attempts after the first for passing troubles."] = 2
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
