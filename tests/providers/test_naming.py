from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.providers.model_catalogue import shipped_catalogue
from hermes.providers.model_names import newest_match, spell_for_vendor, split_model_ref

VENDORS = shipped_catalogue().vendors


@pytest.mark.parametrize(
    ("vendor", "given_name", "spelled"),
    [
        ("openrouter", "anthropic/claude-sonnet-4.6", "anthropic/claude-sonnet-4.6"),
        ("openrouter", "claude-sonnet-4.6", "anthropic/claude-sonnet-4.6"),
        ("openrouter", "gpt-5.2", "openai/gpt-5.2"),
        ("openrouter", "o3-mini", "openai/o3-mini"),
        ("openrouter", "gemma-3", "google/gemma-3"),
        ("openrouter", "glm-4.6", "z-ai/glm-4.6"),
        ("openrouter", "kimi-k2", "moonshotai/kimi-k2"),
        ("openrouter", "grok-4", "x-ai/grok-4"),
        ("openrouter", "qwen3-coder:free", "qwen/qwen3-coder:free"),
        ("openrouter", "MiniMax-M2", "minimax/MiniMax-M2"),
        ("openrouter", "llama-3.3-70b", "meta-llama/llama-3.3-70b"),
        ("openrouter", "mimo-v2", "xiaomi/mimo-v2"),
        ("openrouter", "nemotron-nano", "nvidia/nemotron-nano"),
        ("openrouter", "something-new", "something-new"),
        ("openrouter", "", ""),
        ("ai-gateway", "grok-4", "xai/grok-4"),
        ("kilocode", "claude-sonnet-4.6", "anthropic/claude-sonnet-4.6"),
        ("anthropic", "anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("anthropic", "claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("anthropic", "openai/gpt-5.2", "openai/gpt-5.2"),
        ("copilot", "anthropic/claude-sonnet-4.5", "claude-sonnet-4.5"),
        ("openai-codex", "openai/gpt-5.2", "gpt-5.2"),
        ("opencode-zen", "anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("opencode-zen", "openai/gpt-5.2", "gpt-5.2"),
        ("deepseek", "deepseek/deepseek-chat", "deepseek-chat"),
        ("deepseek", "qwen/qwen3", "qwen/qwen3"),
        ("zai", "z-ai/glm-4.6", "glm-4.6"),
        ("kimi-coding", "moonshotai/kimi-k2.5", "kimi-k2.5"),
        ("gemini", "google/gemini-3-pro", "gemini-3-pro"),
        ("gemini", "models/gemini-3-pro", "gemini-3-pro"),
        ("xiaomi", "MiMo-V2", "mimo-v2"),
        ("huggingface", "Qwen/Qwen3-Coder", "Qwen/Qwen3-Coder"),
        ("custom", "openai/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("custom", "qwen3:8b", "qwen3:8b"),
    ],
)
def test_each_vendor_spells_a_model_in_its_way(vendor: str, given_name: str, spelled: str) -> None:
    assert spell_for_vendor(VENDORS[vendor], given_name) == spelled


@given(st.sampled_from(sorted(VENDORS)), st.text("abcgptqwenclaude-./:0123456789", max_size=30))
def test_a_spelled_name_stays_as_it_is(vendor: str, name: str) -> None:
    once = spell_for_vendor(VENDORS[vendor], name)
    if VENDORS[vendor].names != "own" or once.count("/") == 0:
        assert spell_for_vendor(VENDORS[vendor], once) == once


@pytest.mark.parametrize(
    ("text", "vendor", "model"),
    [
        ("openrouter:qwen/qwen3-coder", "openrouter", "qwen/qwen3-coder"),
        ("or:qwen/qwen3-coder:free", "openrouter", "qwen/qwen3-coder:free"),
        ("kimi:kimi-k2.5", "kimi-coding", "kimi-k2.5"),
        ("ollama:qwen3:8b", "custom", "qwen3:8b"),
        ("Anthropic: claude-opus-4-6", "anthropic", "claude-opus-4-6"),
        ("qwen:0.5b", None, "qwen:0.5b"),
        ("deepseek:7b", None, "deepseek:7b"),
        ("deepseek:latest", None, "deepseek:latest"),
        ("grok:8x7b-instruct-q4_0", None, "grok:8x7b-instruct-q4_0"),
        ("kimi:e4b", None, "kimi:e4b"),
        ("glm:q4_K_M", None, "glm:q4_K_M"),
        ("mimo:7b-rl-fp16", None, "mimo:7b-rl-fp16"),
        ("deepseek:free", None, "deepseek:free"),
        ("claude:extended", None, "claude:extended"),
        ("qwen/qwen3-coder:nitro", None, "qwen/qwen3-coder:nitro"),
        ("nobody:model", None, "nobody:model"),
        ("openrouter:", None, "openrouter:"),
        ("plain", None, "plain"),
    ],
)
def test_only_a_known_vendor_in_front_of_a_colon_is_split_off(
    text: str, vendor: str | None, model: str
) -> None:
    found, rest = split_model_ref(shipped_catalogue(), text)
    assert (found.name if found else None, rest) == (vendor, model)


MODELS = (
    "anthropic/claude-opus-4.6", "anthropic/claude-opus-5.5", "anthropic/claude-sonnet-4.5",
    "anthropic/claude-sonnet-5", "anthropic/claude-3.5-haiku", "anthropic/claude-haiku-4.5",
    "openai/gpt-5.4", "openai/gpt-5.4-mini", "openai/gpt-6-luna", "openai/gpt-6.1-sol",
    "openai/gpt-oss-120b", "openai/gpt-5.3-codex", "openai/gpt-image-2", "openai/gpt-4o-2024-08-06",
    "google/gemini-2.5-pro", "google/gemini-3.8-flash", "google/gemini-3.9-flash-lite-preview",
    "x-ai/grok-4.20", "x-ai/grok-4.7", "x-ai/grok-4.3",
    "meta-llama/llama-3.3-70b-instruct", "meta-llama/llama-3.1-405b",
    "qwen/qwen3-235b-a22b", "qwen/qwen3.7-plus", "qwen/qwen2.5-72b-instruct",
    "moonshotai/kimi-k2.6", "moonshotai/kimi-k3", "z-ai/glm-4.6", "z-ai/glm-5.2",
    "deepseek/deepseek-v3.2", "deepseek/deepseek-v4-pro", "minimax/minimax-m2.5",
    "minimax/minimax-m3",
)  # fmt: skip


@pytest.mark.parametrize(
    ("word", "model"),
    [
        ("sonnet", "anthropic/claude-sonnet-5"),
        ("Opus", "anthropic/claude-opus-5.5"),
        ("haiku", "anthropic/claude-haiku-4.5"),
        ("gpt", "openai/gpt-6.1-sol"),
        ("codex", "openai/gpt-5.3-codex"),
        ("gemini", "google/gemini-3.8-flash"),
        ("grok", "x-ai/grok-4.7"),
        ("llama", "meta-llama/llama-3.3-70b-instruct"),
        ("qwen", "qwen/qwen3.7-plus"),
        ("kimi", "moonshotai/kimi-k3"),
        ("glm", "z-ai/glm-5.2"),
        ("deepseek", "deepseek/deepseek-v4-pro"),
        ("minimax", "minimax/minimax-m3"),
        ("mistral", ""),
        ("something", ""),
    ],
)
def test_a_short_name_means_the_newest_model_of_its_kind(word: str, model: str) -> None:
    assert newest_match(shipped_catalogue(), word, MODELS) == model
    assert newest_match(shipped_catalogue(), word, reversed(MODELS)) == model
