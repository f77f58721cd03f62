"""Servers are told apart and asked over real HTTP."""

from __future__ import annotations

import pytest

from hermes.core.errors import ProviderError
from hermes.net.http import HttpClient
from hermes.providers.model_catalogue import shipped_catalogue
from hermes.providers.model_listing import ModelInfo
from hermes.providers.model_servers import (
    detect_server,
    find_models_url,
    list_models,
    model_info,
    root_of,
)
from tests.providers.asking import KEY, endpoint
from tests.providers.fake_servers import LLAMA_CPP, LM_STUDIO, OLLAMA, PROXY, VLLM, Pages, serving

VENDORS = shipped_catalogue().vendors


@pytest.mark.parametrize(
    ("pages", "kind"),
    [
        (LM_STUDIO, "lmstudio"),
        (OLLAMA, "ollama"),
        (LLAMA_CPP, "llamacpp"),
        (VLLM, "vllm"),
        (PROXY, ""),
        # Some servers imitate others; what they are is asked first.
        ({**LM_STUDIO, **OLLAMA}, "lmstudio"),
        ({**LLAMA_CPP, **OLLAMA}, "ollama"),
        ({"GET /api/tags": {"tags": []}, **LLAMA_CPP}, "llamacpp"),
    ],
)
async def test_kinds_of_servers_are_told_apart(http: HttpClient, pages: Pages, kind: str) -> None:
    async with serving(pages) as server:
        assert await detect_server(http, f"{server.url}/v1") == kind
    assert kind == "" or kind in shipped_catalogue().servers


async def test_they_are_asked_in_a_fixed_order_with_their_key(http: HttpClient) -> None:
    async with serving(VLLM) as server:
        await detect_server(http, f"{server.url}/v1", key=KEY)
    assert server.asked == ["GET /api/v1/models", "GET /api/tags", "GET /props", "GET /version"]
    assert set(server.keys) == {f"bearer {KEY}"}


@pytest.mark.parametrize(
    ("pages", "model", "info"),
    [
        (OLLAMA, "qwen3:8b", ModelInfo(id="qwen3:8b", window=16384, tools=True, vision=False,
                                       reasons=False, loaded=True)),
        (LM_STUDIO, "qwen3-8b", ModelInfo(id="qwen3-8b", window=12_000, loaded=True)),
        (LM_STUDIO, "other", ModelInfo(id="other", window=4_096)),
        (LM_STUDIO, "missing", None),
        (LLAMA_CPP, "qwen", ModelInfo(id="/weights/qwen.gguf", window=8192, loaded=True)),
        (VLLM, "Qwen/Qwen3-8B", ModelInfo(id="Qwen/Qwen3-8B", window=24_576)),
        (PROXY, "a", ModelInfo(id="a", window=65_536)),
        (PROXY, "missing", None),
        ({}, "a", None),
    ],
)  # fmt: skip
async def test_each_kind_tells_the_window_in_its_own_way(
    http: HttpClient, pages: Pages, model: str, info: ModelInfo | None
) -> None:
    async with serving(pages) as server:
        assert await model_info(http, f"{server.url}/v1", model) == info


async def test_a_loaded_model_of_ollama_has_the_window_it_was_loaded_with(http: HttpClient) -> None:
    running = {"models": [{"name": "qwen3:8b", "context_length": 4096}]}
    async with serving({**OLLAMA, "GET /api/ps": running}) as server:
        info = await model_info(http, server.url, "qwen3:8b", server="ollama")
    assert info is not None and (info.window, info.loaded) == (4096, True)


async def test_a_silent_server_is_given_up_on(http: HttpClient) -> None:
    silent = dict.fromkeys(
        ("GET /api/v1/models", "GET /api/tags", "GET /props", "GET /version"), "silence"
    )
    async with serving(silent) as server:
        assert await detect_server(http, server.url, seconds=0.05) == ""


async def test_nobody_there_is_no_error(http: HttpClient) -> None:
    assert await detect_server(http, "http://127.0.0.1:9/v1", seconds=0.2) == ""
    assert await model_info(http, "http://127.0.0.1:9/v1", "m", seconds=0.2) is None


async def test_models_are_listed_with_the_key_of_the_endpoint(http: HttpClient) -> None:
    async with serving(VLLM) as server:
        found = await list_models(http, endpoint("chat", server.url))
        await list_models(http, endpoint("messages", server.url))
    assert found == (ModelInfo(id="Qwen/Qwen3-8B", window=24_576),)
    assert server.asked == ["GET /v1/models"] * 2
    assert server.keys == [f"bearer {KEY}"] * 2


async def test_a_list_that_is_refused_is_an_error_in_one_sentence(http: HttpClient) -> None:
    async with serving({}) as server:
        with pytest.raises(ProviderError, match=r"lists no models \(HTTP 404\); check key") as told:
            await list_models(http, endpoint("chat", server.url))
    assert told.value.status == 404


async def test_a_base_url_without_its_end_is_mended(http: HttpClient) -> None:
    async with serving(VLLM) as server:
        assert await find_models_url(http, server.url) == f"{server.url}/v1"
        assert await find_models_url(http, f"{server.url}/v1/") == f"{server.url}/v1"
        assert await find_models_url(http, f"{server.url}/else") == ""


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://x:1/v1", "http://x:1"),
        ("http://x:1/v1/", "http://x:1"),
        ("http://x:1", "http://x:1"),
        ("http://x/proxy/anthropic", "http://x/proxy"),
        ("http://x/proxy/openai/v1", "http://x/proxy"),
    ],
)
def test_the_server_itself_is_found_below_the_paths_of_formats(url: str, root: str) -> None:
    assert root_of(url) == root


def test_kinds_of_servers_know_how_thought_is_asked_for() -> None:
    def asked(server: str) -> str:
        made = shipped_catalogue().endpoint(
            VENDORS["custom"], "qwen3:8b", url="http://127.0.0.1:1/v1", server=server
        )
        return made.profile.effort

    kinds = ("ollama", "vllm", "llamacpp", "lmstudio", "")
    assert [asked(kind) for kind in kinds] == ["think", "template", "template", "none", "none"]
