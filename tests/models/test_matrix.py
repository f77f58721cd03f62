"""Which provider, wire, host and model follow from settings, environment and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.errors import ConfigError, UsageError
from hermes.core.world import World
from hermes.models.models import Models
from hermes.providers.endpoint import Endpoint

OPENROUTER = {"OPENROUTER_API_KEY": "sk-or-0123456789"}
ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-ant-0123456789"}
OPENAI = {"OPENAI_API_KEY": "sk-proj-0123456789"}
ZAI = {"ZAI_API_KEY": "zai-0123456789"}
CLAUDE = "{provider: anthropic, default: claude-sonnet-4.6}"
OLLAMA = "{provider: custom, base_url: 'http://localhost:11434/v1', default: 'qwen3:8b'}"
BOX = "{box: {base_url: 'http://box.lan:9000/v1', default_model: m, key_env: BOX_KEY}}"


def models(home: Path, config: str, env: dict[str, str], flags: dict[str, str]) -> Models:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(config)
    keys = {"provider": "model.provider", "model": "model.default"}
    given = {keys[name]: value for name, value in flags.items()}
    return Models(load(Home(home), flags=given, env=env), World(), env=env)


async def chosen(home: Path, config: str, env: dict[str, str], flags: dict[str, str]) -> Endpoint:
    found = models(home, config, env, flags)
    try:
        choice = await found.choose()
        return found.endpoint(choice.model, choice.provider)
    finally:
        await found.close()


def row(
    *, model: str = "", more: str = "", env: dict[str, str] | None = None, **flags: str
) -> tuple[str, dict[str, str], dict[str, str]]:
    lines = ([f"model: {model}"] if model else []) + ([more] if more else [])
    return "\n".join(lines) + "\n", env or {}, flags


ROWS: list[tuple[tuple[str, dict[str, str], dict[str, str]], dict[str, str]]] = [
    (row(env=OPENROUTER), {"name": "openrouter", "wire": "chat", "host": "openrouter.ai"}),
    (row(env=OPENAI), {"name": "openai-api", "wire": "responses", "host": "api.openai.com"}),
    (row(env=OPENAI | OPENROUTER), {"name": "openrouter"}),
    (
        row(model=CLAUDE, env=ANTHROPIC | OPENROUTER),
        {"name": "anthropic", "wire": "messages", "model": "claude-sonnet-4-6"},
    ),
    (
        row(model="{provider: openrouter, default: claude-sonnet-4.6}", env=OPENROUTER),
        {"name": "openrouter", "model": "anthropic/claude-sonnet-4.6"},
    ),
    (
        row(model=OLLAMA, env=OPENAI),
        {"name": "custom", "wire": "chat", "host": "localhost", "key": "", "model": "qwen3:8b"},
    ),
    (
        row(model="{base_url: 'https://x.test/anthropic', default: m}"),
        {"name": "custom", "wire": "messages", "host": "x.test", "key": ""},
    ),
    (
        row(env={"KIMI_API_KEY": "sk-kimi-0123456789"}, provider="kimi"),
        {"name": "kimi-coding", "wire": "messages", "host": "api.kimi.com"},
    ),
    (
        row(model="{provider: zai}", env=ZAI | OPENROUTER),
        {"name": "zai", "host": "api.z.ai"},
    ),
]
# Beyond the plain cases: prefixes, aliases, names of one's own, what beats what.
MORE: list[tuple[tuple[str, dict[str, str], dict[str, str]], dict[str, str]]] = [
    (
        ("model: {provider: zai}\n", ZAI | OPENROUTER, {"model": "openrouter:qwen/qwen3-coder"}),
        {"name": "openrouter", "model": "qwen/qwen3-coder"},
    ),
    (
        (f"model: {CLAUDE}\n", ANTHROPIC | OPENROUTER, {"provider": "openrouter"}),
        {"name": "openrouter", "model": "anthropic/claude-sonnet-4.6"},
    ),
    (
        (f"model: {CLAUDE}\n", ANTHROPIC | ZAI, {"provider": "zai"}),
        {"name": "zai", "model": "glm-5.2"},
    ),
    (
        (f"model: {OLLAMA}\n", OPENROUTER, {"provider": "openrouter", "model": "x/y"}),
        {"name": "openrouter", "host": "openrouter.ai", "model": "x/y"},
    ),
    (
        ("", ANTHROPIC | OPENAI, {"model": "gpt-5.2"}),
        {"name": "openai-api", "model": "gpt-5.2"},
    ),
    (
        ("", ANTHROPIC | OPENAI, {"model": "openai/gpt-5.2"}),
        {"name": "openai-api", "model": "gpt-5.2"},
    ),
    (
        ("model: {provider: openai-api}\n", ANTHROPIC | OPENAI, {"model": "anthropic/claude-x"}),
        {"name": "anthropic", "model": "claude-x"},
    ),
    (
        ("model: {provider: openai-api}\n", OPENAI, {"model": "sub/name"}),
        {"name": "openai-api", "model": "sub/name"},
    ),
    (
        ("model: qwen3:8b\nproviders: " + BOX + "\n", {"BOX_KEY": "box-0123456789"}, {}),
        {"name": "box", "host": "box.lan", "model": "qwen3:8b", "key": "box-0123456789"},
    ),
    (
        ("model: {provider: 'custom:box'}\nproviders: " + BOX + "\n", {"BOX_KEY": "box-01"}, {}),
        {"name": "box", "model": "m", "key": "box-01"},
    ),
    (
        ("providers: " + BOX + "\n", {"BOX_KEY": "box-01"} | OPENROUTER, {"model": "box:big"}),
        {"name": "box", "model": "big"},
    ),
    (
        (
            "providers: {claude: {base_url: 'http://10.0.0.5/v1', default_model: q}}\n",
            ANTHROPIC,
            {"provider": "claude"},
        ),
        {"name": "claude", "host": "10.0.0.5", "key": ""},
    ),
    (
        (
            "model_aliases: {fast: 'openrouter:z-ai/glm-5'}\n",
            OPENROUTER | OPENAI,
            {"model": "fast"},
        ),
        {"name": "openrouter", "model": "z-ai/glm-5"},
    ),
    (
        (
            "model: {provider: anthropic}\n"
            "providers: {anthropic: {models: {claude-sonnet-98: {vision: true}, "
            "claude-sonnet-99: {vision: true}}}}\n",
            ANTHROPIC,
            {"model": "sonnet"},
        ),
        {"name": "anthropic", "model": "claude-sonnet-99"},
    ),
    (
        ("", {}, {"provider": "ollama", "model": "qwen3:8b"}),
        {"name": "ollama", "host": "127.0.0.1", "model": "qwen3:8b", "server": "ollama"},
    ),
    (
        ("model: {provider: zai, default: glm-5}\n", ZAI | OPENROUTER, {}),
        {"name": "zai", "model": "glm-5"},
    ),
    (
        (
            "model: {provider: zai}\n",
            ZAI | OPENROUTER | {"HERMES_INFERENCE_PROVIDER": "openrouter"},
            {},
        ),
        {"name": "zai"},
    ),
    (("", ZAI | OPENROUTER | {"HERMES_INFERENCE_PROVIDER": "zai"}, {}), {"name": "zai"}),
    (
        ("", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", **OPENAI, **OPENROUTER}, {"model": "m"}),
        {"name": "custom", "host": "127.0.0.1", "key": OPENAI["OPENAI_API_KEY"]},
    ),
    (
        ("", {"OPENROUTER_API_KEY": "changeme", **ZAI}, {}),
        {"name": "zai"},
    ),
]


@pytest.mark.parametrize(("given", "expected"), [*ROWS, *MORE], ids=lambda value: str(value))
async def test_the_matrix(
    tmp_path: Path, given: tuple[str, dict[str, str], dict[str, str]], expected: dict[str, Any]
) -> None:
    endpoint = await chosen(tmp_path / "home", *given)
    assert {name: getattr(endpoint, name) for name in expected} == expected


async def test_a_configured_provider_without_its_key_is_an_error_that_names_the_variable(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY is not set"):
        await chosen(tmp_path / "home", f"model: {CLAUDE}\n", OPENROUTER, {})
    with pytest.raises(ConfigError, match="OPENROUTER_API_KEY is not set"):
        flags = {"model": "openrouter:qwen/qwen3-coder"}
        await chosen(tmp_path / "home", "model: {provider: zai}\n", ZAI, flags)
    with pytest.raises(ConfigError, match="BOX_KEY is not set"):
        await chosen(tmp_path / "home", f"providers: {BOX}\n", {}, {"provider": "box"})


async def test_an_unknown_provider_is_wrong_usage_with_near_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no provider 'nope'"):
        await chosen(tmp_path / "home", "", OPENROUTER, {"provider": "nope"})
    with pytest.raises(UsageError, match="did you mean openrouter"):
        await chosen(tmp_path / "home", "", OPENROUTER, {"provider": "openruter"})


def test_a_token_of_github_alone_chooses_nothing(tmp_path: Path) -> None:
    env = {"GH_TOKEN": "gho_0123456789", "GITHUB_TOKEN": "gho_0123456789"}
    assert models(tmp_path / "home", "", env, {}).resolver.candidates() == ()


async def test_what_is_there_but_cannot_be_used_is_passed_over(tmp_path: Path) -> None:
    endpoint = await chosen(tmp_path / "home", f"providers: {BOX}\n", OPENROUTER, {})
    assert endpoint.name == "openrouter"


async def test_a_provider_that_is_switched_off_is_not_used(tmp_path: Path) -> None:
    config = "providers: {box: {base_url: 'http://box.lan/v1', enabled: false}}\n"
    with pytest.raises(ConfigError, match=r"providers\.box\.enabled"):
        await chosen(tmp_path / "home", config, {}, {"provider": "box"})


async def test_a_window_that_was_set_counts_for_the_model_it_was_set_for(tmp_path: Path) -> None:
    config = "model: {provider: zai, default: glm-5, context_length: 12345}\n"
    found = models(tmp_path / "home", config, ZAI, {})
    assert found.window("glm-5", "zai") == 12345
    assert found.window("glm-4.7", "zai") != 12345
    await found.close()


def test_every_candidate_is_named_with_its_reason(tmp_path: Path) -> None:
    found = models(tmp_path / "home", f"model: {CLAUDE}\n", ANTHROPIC | OPENROUTER, {})
    assert [(each.provider, each.why) for each in found.resolver.candidates()] == [
        ("anthropic", "config.yaml"),
        ("openrouter", "OPENROUTER_API_KEY in the environment"),
        ("anthropic", "ANTHROPIC_API_KEY in the environment"),
    ]
