"""The official client library against the real server: it is the judge of what we send."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, fails, says
from tests.surfaces.api.conftest import Model
from tests.surfaces.api.serving import Serving, serving

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)


@pytest.fixture
def client(api: Serving) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{api.url}/v1", api_key=api.token) as client:
        yield client


def last_user(request: Request) -> str:
    said = [each for each in request.body["messages"] if each["role"] == "user"]
    content = said[-1]["content"]
    return content if isinstance(content, str) else str(content)


def uses_a_tool(request: Request) -> Step:
    if any(each["role"] == "tool" for each in request.body["messages"]):
        return says("two files")
    return calls("terminal", command="echo one two")


def test_models_are_listed(client: OpenAI) -> None:
    assert [each.id for each in client.models.list()] == ["hermes-agent"]
    assert client.models.retrieve("hermes-agent").owned_by == "hermes"


def test_a_chat_completion_is_whole(client: OpenAI) -> None:
    done = client.chat.completions.create(
        model="hermes-agent", messages=[{"role": "user", "content": "hi"}]
    )
    assert done.choices[0].message.content == "hello"
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None and done.usage.total_tokens > 0


def test_a_chat_completion_is_streamed_with_its_usage(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="hermes-agent",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert text == "hello"
    assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == "stop"
    assert chunks[-1].usage is not None and chunks[-1].usage.completion_tokens > 0


def test_tools_run_on_the_server_while_a_chat_is_streamed(client: OpenAI, model: Model) -> None:
    model.rule = uses_a_tool
    payload: list[str] = []
    for chunk in client.chat.completions.create(
        model="hermes-agent", messages=[{"role": "user", "content": "look"}], stream=True
    ):
        state = (chunk.model_extra or {}).get("status")
        payload.append(state or chunk.choices[0].delta.content or "")
    assert "|".join(each for each in payload[:3]) == "|running|completed"
    assert "".join(payload[3:]) == "two files"


async def test_the_async_client_streams_many_at_once(api: Serving, model: Model) -> None:
    async def one(client: AsyncOpenAI, n: int) -> str:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": f"hi {n}"}], stream=True
        )
        return "".join([each.choices[0].delta.content or "" async for each in stream])

    async with AsyncOpenAI(base_url=f"{api.url}/v1", api_key=api.token) as client:
        assert await asyncio.gather(*(one(client, n) for n in range(8))) == ["hello"] * 8


def test_pictures_reach_the_model(client: OpenAI, model: Model) -> None:
    seen: list[str] = []

    def rule(request: Request) -> Step:
        seen.append(str(request.body["messages"][-1]["content"]))
        return says("a pixel")

    model.rule = rule
    done = client.chat.completions.create(
        model="m",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what is it?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            }
        ],
    )
    assert done.choices[0].message.content == "a pixel"
    assert PIXEL in seen[0].replace("\n", "")
    assert base64.b64decode(PIXEL).startswith(b"\x89PNG")


def test_errors_are_those_of_the_library(api: Serving, client: OpenAI, model: Model) -> None:
    with (
        OpenAI(base_url=f"{api.url}/v1", api_key="hms_wrong") as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="m", messages=[])
    assert bad.value.param == "messages"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_none")
    asked = len(model.server.requests)
    model.rule = lambda request: fails(400, "the model said no")
    with pytest.raises(openai.InternalServerError) as failed:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert failed.value.status_code == 502
    assert len(model.server.requests) == asked + 1


def test_a_response_is_whole_with_the_tools_it_used(client: OpenAI, model: Model) -> None:
    model.rule = uses_a_tool
    done = client.responses.create(model="hermes-agent", input="look")
    assert done.status == "completed"
    assert done.output_text == "two files"
    kinds = [item.type for item in done.output]
    assert kinds == ["function_call", "function_call_output", "message"]
    assert client.responses.retrieve(done.id).output_text == "two files"
    client.responses.delete(done.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(done.id)


def test_a_response_is_streamed_in_order(client: OpenAI, model: Model) -> None:
    model.rule = uses_a_tool
    events = list(client.responses.create(model="m", input="look", stream=True))
    assert [each.sequence_number for each in events] == list(range(len(events)))
    kinds = [each.type for each in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    added = [each.output_index for each in events if each.type == "response.output_item.added"]
    done = [each for each in events if each.type == "response.output_item.done"]
    assert added == sorted(each.output_index for each in done) == list(range(len(added)))
    last = events[-1]
    assert last.type == "response.completed"
    ids = [each.item.id for each in sorted(done, key=lambda each: each.output_index)]
    assert [item.id for item in last.response.output] == ids
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == last.response.output_text == "two files"


def test_responses_are_chained_across_a_restart(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if request.body["messages"][-1]["role"] == "user" and "look" in last_user(request):
            return calls("terminal", command="echo looked")
        said = [str(m["content"]) for m in request.body["messages"] if m["role"] == "user"]
        return says(f"heard {len(said)}")

    with (
        ScriptedServer.in_thread(rule, strict=False) as model,
        serving(tmp_path, model.url) as server,
        OpenAI(base_url=f"{server.url}/v1", api_key=server.token) as client,
    ):
        first = client.responses.create(model="m", input="look one", conversation="talk")
        second = client.responses.create(model="m", input="two", previous_response_id=first.id)
        server.down()
        server.up()
        third = client.responses.create(
            model="m", input="look three", previous_response_id=second.id
        )
        branch = client.responses.create(model="m", input="else", previous_response_id=first.id)
        named = client.responses.create(model="m", input="two", conversation="talk")
        heard = [each.output_text for each in (first, second, third, branch, named)]
        assert heard == ["heard 1", "heard 2", "heard 3", "heard 2", "heard 2"]
