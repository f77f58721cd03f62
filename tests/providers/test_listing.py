"""The shapes in which servers list their models."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import JsonValue
from hermes.providers.model_listing import (
    ModelInfo,
    read_listing,
    read_llamacpp_window,
    read_ollama_model,
    with_tools,
)
from hermes.providers.profile import ModelPrice


def test_the_plain_list_of_most_servers() -> None:
    page = {
        "object": "list",
        "data": [
            {"id": "small", "object": "model", "created": 5, "owned_by": "us"},
            {"id": "large", "max_model_len": 32768},
            {"id": "deep", "context_length": 0, "meta": {"n_ctx_train": 4096}},
            {"object": "model"},
        ],
    }
    assert read_listing(page) == (
        ModelInfo(id="small", created=5),
        ModelInfo(id="large", window=32768),
        ModelInfo(id="deep", window=4096),
    )


def test_openrouters_list_tells_prices_and_abilities() -> None:
    able = {
        "id": "anthropic/claude-opus-4.6",
        "canonical_slug": "anthropic/claude-4.6-opus",
        "name": "Anthropic: Claude Opus 4.6",
        "created": 1770000000,
        "context_length": 1000000,
        "supported_parameters": ["tools", "reasoning", "max_tokens"],
        "architecture": {"input_modalities": ["text", "image"]},
        "pricing": {
            "prompt": "0.000005",
            "completion": "0.000025",
            "input_cache_read": "0.0000005",
            "input_cache_write": "0.00000625",
        },
        "top_provider": {"context_length": 1000000, "max_completion_tokens": 128000},
    }
    poor = {
        "id": "old/words",
        "supported_parameters": ["temperature"],
        "architecture": {"input_modalities": ["text"]},
        "pricing": {"prompt": "-1", "completion": "-1"},
    }
    found = read_listing({"data": [able, poor]})
    assert found[0] == ModelInfo(
        id="anthropic/claude-opus-4.6",
        name="Anthropic: Claude Opus 4.6",
        window=1000000,
        output=128000,
        tools=True,
        vision=True,
        reasons=True,
        price=ModelPrice(input=5, output=25, cache_read=0.5, cache_write=6.25),
        created=1770000000,
    )
    assert found[1] == ModelInfo(id="old/words", tools=False, vision=False, reasons=False)
    assert with_tools(found) == found[:1]


def test_anthropics_list() -> None:
    page = {
        "data": [
            {
                "type": "model",
                "id": "claude-opus-5-5",
                "display_name": "Claude Opus 5.5",
                "created_at": "2026-09-22T00:00:00Z",
                "max_input_tokens": 1000000,
                "max_tokens": 128000,
            }
        ],
        "has_more": False,
    }
    assert read_listing(page) == (
        ModelInfo(
            id="claude-opus-5-5",
            name="Claude Opus 5.5",
            window=1000000,
            output=128000,
            created=1790035200,
        ),
    )


def test_the_lists_of_gateways() -> None:
    vercel = {"id": "openai/gpt-5", "type": "language", "tags": ["tool-use", "vision"],
              "context_window": 400000, "max_tokens": 128000,
              "pricing": {"input": "0.00000125", "output": "0.00001"}}  # fmt: skip
    picture = {"id": "some/painter", "type": "image"}
    copilot = {"id": "gpt-5.4", "capabilities": {
        "type": "chat", "limits": {"max_context_window_tokens": 264000, "max_output_tokens": 64000},
        "supports": {"tool_calls": True, "vision": False}}}  # fmt: skip
    assert read_listing({"data": [vercel, picture, copilot]}) == (
        ModelInfo(id="openai/gpt-5", window=400000, output=128000, tools=True,
                  price=ModelPrice(input=1.25, output=10)),
        ModelInfo(id="some/painter", tools=False),
        ModelInfo(id="gpt-5.4", window=264000, output=64000, tools=True, vision=False),
    )  # fmt: skip


def test_lm_studios_list_tells_the_window_that_is_loaded() -> None:
    page = {
        "models": [
            {
                "type": "llm",
                "key": "qwen/qwen3-8b",
                "display_name": "Qwen3 8B",
                "loaded_instances": [{"config": {"context_length": 16384}}],
                "max_context_length": 131072,
                "capabilities": {"vision": False, "trained_for_tool_use": True},
            },
            {"type": "llm", "key": "idle", "loaded_instances": [], "max_context_length": 8192},
            {"type": "embedding", "key": "nomic", "max_context_length": 2048},
        ]
    }
    assert read_listing(page) == (
        ModelInfo(id="qwen/qwen3-8b", name="Qwen3 8B", window=16384, tools=True, vision=False,
                  loaded=True),
        ModelInfo(id="idle", window=8192),
        ModelInfo(id="nomic", window=2048, tools=False),
    )  # fmt: skip


def test_ollama_prefers_what_runs_to_what_was_trained() -> None:
    page = {
        "parameters": 'stop "<|im_end|>"\nnum_ctx                        8192',
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
        "capabilities": ["completion", "tools", "thinking"],
    }
    assert read_ollama_model("qwen3:8b", page) == ModelInfo(
        id="qwen3:8b", window=8192, tools=True, vision=False, reasons=True, loaded=True
    )
    assert read_ollama_model("m", {**page, "parameters": ""}).window == 40960
    assert read_ollama_model("m", {}) == ModelInfo(id="m")


def test_llama_cpps_properties() -> None:
    assert read_llamacpp_window({"default_generation_settings": {"n_ctx": 4096}}) == 4096
    assert read_llamacpp_window({"error": "not found"}) is None


WORDS = st.sampled_from(
    ["id", "key", "name", "data", "models", "pricing", "prompt", "completion", "capabilities",
     "limits", "supports", "context_length", "top_provider", "meta", "architecture", "tags",
     "input_modalities", "loaded_instances", "config", "created", "created_at", "type",
     "supported_parameters", "parameters", "model_info", "x.context_length", "cost", "limit"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
PAGES: st.SearchStrategy[JsonValue] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=40,
)


@given(PAGES)
def test_whatever_a_server_sends_is_read_or_left_out(page: JsonValue) -> None:
    for info in read_listing(page):
        assert info.id
        assert info.window is None or info.window > 0
    read_ollama_model("m", page)
    read_llamacpp_window(page)
