"""Servers of one's own that cut prompts, refuse tools, or are called localhost."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.messages import AssistantMessage, Text, Usage, UserMessage, user_says
from hermes.core.prompt import Notice, Prompt
from hermes.net.http import HttpClient
from hermes.providers.local_server import (
    LocalServerProvider,
    ServerWindow,
    TokenLowerBound,
    explain_refusal,
    query_window,
)
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails, says
from tests.providers.asking import HI, Heard, ask, direct, endpoint

WORDS = "the agent reads every line of this file and says what it thinks of it. "
OLLAMA = {
    "/api/tags": {"models": [{"name": "scripted"}]},
    "/api/ps": {"models": [{"name": "scripted", "context_length": 4096}]},
    "/api/show": {"model_info": {"qwen3.context_length": 131_072}, "capabilities": ["tools"]},
}
LLAMACPP = {"/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1}}
LMSTUDIO = {
    "/api/v1/models": {
        "models": [
            {
                "key": "scripted",
                "loaded_instances": [{"config": {"context_length": 4096}}],
                "max_context_length": 32_768,
            }
        ]
    }
}
VLLM = {"/version": {"version": "0.11.0"}}


def long_prompt(sentences: int) -> Prompt:
    return replace(HI, messages=(user_says(WORDS * sentences),))


def counted(tokens: int, cached: int = 0) -> Step:
    return says("ok", usage=Usage(input=tokens, output=2, cache_read=cached, requests=1))


class Lessons:
    def __init__(self) -> None:
        self.windows: list[int] = []

    def __call__(self, window: int) -> None:
        self.windows.append(window)


def watched(
    server: ScriptedServer, http: HttpClient, window_learner: Lessons
) -> LocalServerProvider:
    inner = direct("chat", server.url, http)
    return LocalServerProvider(
        inner, endpoint("chat", server.url), http=http, learned=window_learner
    )


def warnings_in(heard: Heard) -> list[str]:
    return [d.text for d in heard.deltas if isinstance(d, Notice) and d.kind == "warn"]


@pytest.mark.parametrize(
    ("pages", "advice"),
    [
        (OLLAMA, "Ollama truncated .*4096 tokens.*`model.ollama_num_ctx`, or .*LENGTH=32768"),
        (LLAMACPP, "llama.cpp truncated .*4096 tokens.*`-c 32768`"),
        (LMSTUDIO, "LM Studio truncated .*4096 tokens.*context length of 32768"),
    ],
    ids=["ollama", "llama.cpp", "lmstudio"],
)
async def test_a_prompt_that_was_cut_is_noticed_once(
    pages: Mapping[str, Any], advice: str, http: HttpClient
) -> None:
    window_learner = Lessons()
    steps = [counted(4000), counted(4050)]
    async with ScriptedServer(steps, pages=pages) as server:
        provider = watched(server, http, window_learner)
        (warning,) = warnings_in(await ask(provider, long_prompt(700)))
        assert re.match(advice, warning), warning
        assert warnings_in(await ask(provider, long_prompt(701))) == []
    assert window_learner.windows == [4096]


async def test_a_server_that_tells_nothing_is_judged_by_two_counts(http: HttpClient) -> None:
    window_learner = Lessons()
    async with ScriptedServer([counted(4000), counted(4050)], models=()) as server:
        provider = watched(server, http, window_learner)
        assert warnings_in(await ask(provider, long_prompt(700))) == []
        (warning,) = warnings_in(await ask(provider, long_prompt(720)))
        assert "The server truncated" in warning and "about 4050 tokens" in warning
    assert window_learner.windows == [4050]


@pytest.mark.parametrize(
    "steps",
    [
        [counted(9000), counted(9100)],
        [counted(12), counted(30)],
        [counted(40, cached=9000), counted(30, cached=9000)],
        [replace(says("ok"), flaws=("no_usage",))] * 2,
    ],
    ids=["all counted", "only what is new is counted", "cached", "nothing counted"],
)
async def test_there_is_no_false_alarm(steps: list[Step], http: HttpClient) -> None:
    window_learner = Lessons()
    async with ScriptedServer(steps, models=()) as server:
        provider = watched(server, http, window_learner)
        for sentences in (600, 601):
            assert warnings_in(await ask(provider, long_prompt(sentences))) == []
    assert window_learner.windows == []


async def test_a_window_that_is_large_enough_rules_out_a_cut(http: HttpClient) -> None:
    """Servers that count only what their cache did not hold."""
    pages = {"/props": {"default_generation_settings": {"n_ctx": 65_536}}}
    window_learner = Lessons()
    async with ScriptedServer([counted(3000), counted(3000)], pages=pages) as server:
        provider = watched(server, http, window_learner)
        for sentences in (600, 601):
            assert warnings_in(await ask(provider, long_prompt(sentences))) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=20))
def test_the_fewest_tokens_grow_with_the_prompt_and_never_pass_its_characters(
    texts: list[str],
) -> None:
    counting, before = TokenLowerBound(), 0
    messages: tuple[UserMessage | AssistantMessage, ...] = ()
    for text in texts:
        said = (user_says(text), AssistantMessage(parts=(Text(text=text[::-1]),)))
        messages = (*messages, *said)
        prompt = Prompt(system="be brief", messages=messages)
        least = counting.of_prompt(prompt)
        assert before <= least == TokenLowerBound().of_prompt(prompt)
        assert least <= sum(len(m.text) for m in messages) + len("be brief")
        before = least


async def test_what_a_server_says_about_its_window(http: HttpClient) -> None:
    for pages, models, expected in (
        (OLLAMA, (), ServerWindow(server="ollama", tokens=4096)),
        (LLAMACPP, (), ServerWindow(server="llamacpp", tokens=4096)),
        (LMSTUDIO, (), ServerWindow(server="lmstudio", tokens=4096)),
        (
            VLLM,
            ({"id": "scripted", "max_model_len": 16_384},),
            ServerWindow(server="vllm", tokens=16_384),
        ),
        (
            {**OLLAMA, "/api/ps": {"models": []}},
            (),
            ServerWindow(server="ollama", most=131_072),
        ),
        ({}, (), ServerWindow(server="")),
    ):
        async with ScriptedServer([], pages=pages, models=models) as server:
            assert await query_window(http, endpoint("chat", server.url)) == expected


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (
            400,
            '{"error":{"message":"\\"auto\\" tool choice requires --enable-auto-tool-choice and'
            ' --tool-call-parser to be set"}}',
            "restart it with `--enable-auto-tool-choice --tool-call-parser hermes`",
        ),
        (
            500,
            '{"error":{"code":500,"message":"tools param requires --jinja flag"}}',
            "restart `llama-server` with `--jinja`",
        ),
        (
            400,
            '{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools"}}',
            "choose a model that does",
        ),
    ],
)
async def test_a_refusal_of_tools_names_the_next_step(
    status: int, body: str, sentence: str, http: HttpClient
) -> None:
    step = fails(status)
    failure = replace(step.failure, body=body) if step.failure else None
    async with ScriptedServer([replace(step, failure=failure)]) as server:
        provider = watched(server, http, Lessons())
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
    assert sentence in str(caught.value) and str(caught.value).count("\n") == 0
    assert not caught.value.retryable


async def test_other_errors_stay_as_they_are() -> None:
    error = ProviderError("No.", reason="overloaded", status=503, retryable=True, body="busy")
    assert explain_refusal(error, endpoint("chat", "http://x")) is error


async def test_localhost_is_found_when_its_name_leads_elsewhere(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "localhost":
            raise socket.gaierror("no such name")
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with ScriptedServer([says("ok")]) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        heard = await ask(direct("chat", url, http))
        assert heard.shown == "ok"


async def test_a_local_server_is_never_asked_through_a_proxy() -> None:
    http = HttpClient(proxy="http://127.0.0.1:9")
    async with ScriptedServer([says("ok"), says("ok")]) as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            assert (await ask(direct("chat", url, http))).shown == "ok"
    await http.aclose()
