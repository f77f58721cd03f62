"""Parses model listings of all common shapes."""

from __future__ import annotations

import calendar
import re
import time

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.providers.profile import ModelPrice
from hermes.providers.wire.events import count_of, object_of, objects_of, text_of

WINDOW_KEYS = (
    "context_length", "context_window", "context_size", "max_context_length",
    "max_position_embeddings", "max_model_len", "max_input_tokens", "max_seq_len", "n_ctx",
    "n_ctx_train",
)  # fmt: skip
_OUTPUT_KEYS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
# Kinds of entries that are not chat models, as listings name them.
_OTHER_KINDS = ("embedding", "embeddings", "image", "video", "audio", "reranking", "rerank", "tts")
_TOKENS = 1_000_000
_LARGEST_WINDOW = 1 << 30


class ModelInfo(Value):
    """The facts that a server reports about a model; None is unknown."""

    id: str
    name: str = ""
    window: int | None = None
    output: int | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasons: bool | None = None
    price: ModelPrice | None = None
    loaded: bool | None = None  # `window` is in use now; it is not the model's maximum
    created: int = 0
    bytes: int = 0  # the size of the weights
    parameters: int = 0


def read_listing(page: JsonValue) -> tuple[ModelInfo, ...]:
    """Return the models of a page: `data` (OpenAI, OpenRouter, Anthropic and most others), `models`
    (Ollama, LM Studio), or a bare list."""
    held = object_of(page)
    entries = objects_of(page) or objects_of(held.get("data")) or objects_of(held.get("models"))
    return tuple(info for entry in entries if (info := _info(entry)).id)


def with_tools(models: tuple[ModelInfo, ...]) -> tuple[ModelInfo, ...]:
    """Drop models that are known not to support tools."""
    return tuple(model for model in models if model.tools is not False)


def read_ollama_model(id: str, page: JsonValue) -> ModelInfo:
    """Return one model from Ollama's `/api/show`: the configured window (`num_ctx`) beats the
    trained one."""
    held = object_of(page)
    trained = [
        count_of(value)
        for name, value in object_of(held.get("model_info")).items()
        if name.endswith(".context_length")
    ]
    match = re.search(r"^\s*num_ctx\s+(\d+)\s*$", text_of(held.get("parameters")), re.MULTILINE)
    running = int(match[1]) if match else None
    able = held.get("capabilities")
    return ModelInfo(
        id=id,
        window=running or (trained[0] if trained else None) or None,
        tools="tools" in able if isinstance(able, list) else None,
        vision="vision" in able if isinstance(able, list) else None,
        reasons="thinking" in able if isinstance(able, list) else None,
        loaded=True if running else None,
    )


def read_llamacpp_window(page: JsonValue) -> int | None:
    """Return the window in llama.cpp's `/props`."""
    held = object_of(page)
    settings = object_of(held.get("default_generation_settings"))
    return count_of(settings.get("n_ctx")) or count_of(held.get("n_ctx")) or None


def _info(entry: JsonObject) -> ModelInfo:
    id = text_of(entry.get("id")) or text_of(entry.get("key")) or text_of(entry.get("name"))
    top, meta = object_of(entry.get("top_provider")), object_of(entry.get("meta"))
    running = _loaded_window(entry)
    return ModelInfo(
        id=id or text_of(entry.get("model")),
        name=text_of(entry.get("display_name")) or text_of(entry.get("name")),
        window=running or _first(WINDOW_KEYS, entry, top, _limits(entry), meta),
        output=_first(_OUTPUT_KEYS, top, entry, _limits(entry)),
        tools=_tools(entry),
        vision=_vision(entry),
        reasons=_lists_any(entry.get("supported_parameters"), "reasoning"),
        price=_price(object_of(entry.get("pricing"))),
        loaded=True if running else None,
        created=_created(entry),
        bytes=count_of(entry.get("size") or entry.get("size_bytes") or meta.get("size")),
        parameters=count_of(meta.get("n_params")),
    )


def _limits(entry: JsonObject) -> JsonObject:
    """Return the object in which some gateways put the numbers."""
    limits = object_of(object_of(entry.get("capabilities")).get("limits"))
    renamed = {"context_window": limits.get("max_context_window_tokens")}
    return {**limits, **{name: value for name, value in renamed.items() if value}}


def _loaded_window(entry: JsonObject) -> int | None:
    """Return the window of a model that LM Studio has loaded, which may be less than its
    maximum."""
    if count := count_of(entry.get("loaded_context_length")):
        return count
    instances = objects_of(entry.get("loaded_instances"))
    sizes = [count_of(object_of(one.get("config")).get("context_length")) for one in instances]
    return next((size for size in sizes if size), None)


def _first(keys: tuple[str, ...], *objects: JsonObject) -> int | None:
    for each in objects:
        for key in keys:
            count = count_of(each.get(key))
            if 0 < count < _LARGEST_WINDOW:
                return count
    return None


def _tools(entry: JsonObject) -> bool | None:
    able = entry.get("capabilities")
    if entry.get("type") in _OTHER_KINDS or object_of(able).get("type") in _OTHER_KINDS:
        return False
    if isinstance(able, dict):
        held = able.get("trained_for_tool_use", object_of(able.get("supports")).get("tool_calls"))
        return held if isinstance(held, bool) else None
    for values in (entry.get("supported_parameters"), entry.get("tags")):
        if (known := _lists_any(values, "tools", "tool-use")) is not None:
            return known
    return _lists_any(able, "tools", "tool_use", "tool_calls")


def _vision(entry: JsonObject) -> bool | None:
    able = entry.get("capabilities")
    if isinstance(able, dict):
        held = able.get("vision", object_of(able.get("supports")).get("vision"))
        return held if isinstance(held, bool) else None
    inputs = object_of(entry.get("architecture")).get("input_modalities")
    known = _lists_any(inputs, "image")
    return _lists_any(able, "vision") if known is None else known


def _lists_any(values: JsonValue, *wanted: str) -> bool | None:
    """Return whether a list contains one of these; None if there is no list."""
    if not isinstance(values, list) or not values:
        return None
    return any(word in wanted for word in values)


def _price(prices: JsonObject) -> ModelPrice | None:
    """Read the price in dollars per token, mostly strings. Negative values mean "variable"."""
    rates = {
        "input": _rate(prices, "prompt", "input"),
        "output": _rate(prices, "completion", "output"),
        "cache_read": _rate(prices, "input_cache_read", "cached_input"),
        "cache_write": _rate(prices, "input_cache_write"),
    }
    if rates["input"] is None or rates["output"] is None:
        return None
    return ModelPrice(**rates)  # type: ignore[arg-type]


def _rate(prices: JsonObject, *names: str) -> float | None:
    for name in names:
        try:
            rate = float(prices[name])
        except (KeyError, TypeError, ValueError):
            continue
        return round(rate * _TOKENS, 9) if 0 <= rate < 1 else None
    return None


def _created(entry: JsonObject) -> int:
    if count := count_of(entry.get("created")):
        return count
    try:
        moment = time.strptime(text_of(entry.get("created_at"))[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return 0
    return calendar.timegm(moment)
