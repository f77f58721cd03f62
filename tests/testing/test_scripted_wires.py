"""The official SDKs read what the scripted server writes, streamed and whole, on all wires."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, Literal

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import Usage
from hermes.testing.faults import dripped, flawed, paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import (
    Step,
    call,
    calls,
    calls_many,
    fails,
    says,
    says_nothing,
    thinks,
)

WireName = Literal["chat", "responses", "messages"]
WIRES: tuple[WireName, ...] = ("chat", "responses", "messages")
HI = [{"role": "user", "content": "hi"}]
USAGE = Usage(input=90, output=20, cache_read=7, cache_write=3, reasoning=5, requests=1)


class Heard(Value):
    """What a client understood, in one shape for all wires."""

    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    calls: tuple[tuple[str, str, JsonObject], ...] = ()
    stop: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0


class Clients:
    """The SDKs, pointed at a server of this test."""

    def __init__(self, server: ScriptedServer, openai_sdk: Any, anthropic_sdk: Any) -> None:
        self.server = server
        self.openai = openai_sdk
        self.anthropic = anthropic_sdk

    async def ask(self, wire: WireName, *, stream: bool) -> Heard:
        match wire:
            case "chat":
                return heard_chat(await self._chat(stream))
            case "responses":
                return heard_responses(await self._responses(stream))
            case "messages":
                return heard_messages(await self._messages(stream))

    async def _chat(self, stream: bool) -> Any:
        if not stream:
            return await self.openai.chat.completions.create(model="m", messages=HI)
        usage = {"include_usage": True}
        async with self.openai.chat.completions.stream(
            model="m", messages=HI, stream_options=usage
        ) as events:
            return await events.get_final_completion()

    async def _responses(self, stream: bool) -> Any:
        if not stream:
            return await self.openai.responses.create(model="m", input="hi")
        async with self.openai.responses.stream(model="m", input="hi") as events:
            return await events.get_final_response()

    async def _messages(self, stream: bool) -> Any:
        asked = {"model": "m", "max_tokens": 100, "messages": HI}
        if not stream:
            return await self.anthropic.messages.create(**asked)
        async with self.anthropic.messages.stream(**asked) as events:
            return await events.get_final_message()


Serve = Callable[..., Any]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def start(*steps: Step) -> Clients:
            server = await stack.enter_async_context(ScriptedServer(steps, loop=True))
            # Loading the root certificates is most of the work of an ordinary client.
            http = await stack.enter_async_context(httpx2.AsyncClient(verify=False, timeout=60))
            one = openai.AsyncOpenAI(
                base_url=f"{server.url}/v1", api_key="k", max_retries=0, http_client=http
            )
            two = anthropic.AsyncAnthropic(
                base_url=server.url, api_key="k", max_retries=0, http_client=http
            )
            return Clients(server, one, two)

        yield start


def heard_chat(reply: ChatCompletion) -> Heard:
    choice = reply.choices[0]
    made = tuple(
        (c.id, c.function.name, json.loads(c.function.arguments))
        for c in choice.message.tool_calls or ()
        if c.type == "function"
    )
    extra = choice.message.model_extra or {}
    return Heard(
        text=choice.message.content or "",
        reasoning=extra.get("reasoning_content", ""),
        calls=made,
        stop=choice.finish_reason,
        prompt_tokens=reply.usage.prompt_tokens if reply.usage else 0,
        output_tokens=reply.usage.completion_tokens if reply.usage else 0,
    )


def heard_responses(reply: Response) -> Heard:
    thoughts = [item for item in reply.output if item.type == "reasoning"]
    return Heard(
        text=reply.output_text,
        reasoning="".join(s.text for item in thoughts for s in item.summary),
        sealed="".join(item.encrypted_content or "" for item in thoughts),
        calls=tuple(
            (item.call_id, item.name, json.loads(item.arguments))
            for item in reply.output
            if item.type == "function_call"
        ),
        stop=reply.status or "",
        prompt_tokens=reply.usage.input_tokens if reply.usage else 0,
        output_tokens=reply.usage.output_tokens if reply.usage else 0,
    )


def heard_messages(reply: Message) -> Heard:
    thoughts = [block for block in reply.content if block.type == "thinking"]
    return Heard(
        text="".join(block.text for block in reply.content if block.type == "text"),
        reasoning="".join(block.thinking for block in thoughts),
        sealed="".join(block.signature for block in thoughts),
        calls=tuple(
            (block.id, block.name, dict(block.input))
            for block in reply.content
            if block.type == "tool_use"
        ),
        stop=reply.stop_reason or "",
        prompt_tokens=reply.usage.input_tokens
        + (reply.usage.cache_read_input_tokens or 0)
        + (reply.usage.cache_creation_input_tokens or 0),
        output_tokens=reply.usage.output_tokens,
    )


DONE = {"chat": "stop", "responses": "completed", "messages": "end_turn"}
CALLED = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}
LENGTH = {"chat": "length", "responses": "incomplete", "messages": "max_tokens"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_text_arrives_with_its_usage(serve: Serve, wire: WireName, stream: bool) -> None:
    text = "Grüße 👋 an alle, die hier länger als ein Stückchen lesen."
    clients = await serve(says(text, usage=USAGE))
    heard = await clients.ask(wire, stream=stream)
    assert heard == Heard(text=text, stop=DONE[wire], prompt_tokens=100, output_tokens=20)
    assert clients.server.violations == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_several_calls_arrive_with_chosen_and_given_ids(
    serve: Serve, wire: WireName, stream: bool
) -> None:
    wanted = call("read_file", {"path": "a.txt", "lines": [1, 2], "deep": {"é": None}}, id="mine")
    clients = await serve(calls_many(wanted, ("list_files", {}), text="Let me look."))
    heard = await clients.ask(wire, stream=stream)
    prefix = "toolu_" if wire == "messages" else "call_"
    assert heard.text == "Let me look."
    assert heard.calls == (
        ("mine", "read_file", {"path": "a.txt", "lines": [1, 2], "deep": {"é": None}}),
        (f"{prefix}2", "list_files", {}),
    )
    assert heard.stop == CALLED[wire]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_reasoning_arrives_before_the_text_and_sealed(
    serve: Serve, wire: WireName, stream: bool
) -> None:
    thought = "First this, then that, and then something else."
    clients = await serve(thinks(thought, then=says("So."), sealed="opaque=="))
    heard = await clients.ask(wire, stream=stream)
    assert (heard.text, heard.reasoning) == ("So.", thought)
    assert heard.sealed == ("" if wire == "chat" else "opaque==")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_ran_out_of_room_says_so(
    serve: Serve, wire: WireName, stream: bool
) -> None:
    clients = await serve(says("And then the", stop="length"))
    if wire == "chat" and stream:
        # The SDK turns this finish into an exception, which proves that it saw it.
        with pytest.raises(openai.LengthFinishReasonError):
            await clients.ask(wire, stream=stream)
    elif wire == "responses" and stream:
        # The SDK's own collector only ends with completed answers.
        events = await clients.openai.responses.create(model="m", input="hi", stream=True)
        last = [event async for event in events][-1]
        assert (last.type, last.response.incomplete_details.reason) == (
            "response.incomplete",
            "max_output_tokens",
        )
    else:
        assert (await clients.ask(wire, stream=stream)).stop == LENGTH[wire]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_empty_answer_is_a_whole_answer(
    serve: Serve, wire: WireName, stream: bool
) -> None:
    clients = await serve(says_nothing())
    heard = await clients.ask(wire, stream=stream)
    assert (heard.text, heard.calls, heard.stop) == ("", (), DONE[wire])


@pytest.mark.parametrize("wire", WIRES)
async def test_line_ends_comments_and_splits_do_not_change_what_is_heard(
    serve: Serve, wire: WireName
) -> None:
    plain = calls_many(("look", {"at": "Zürich ☃"}), text="Näher hinsehen, ganz genau.")
    bent = flawed(paced(plain, chunk=1), "crlf", "keep_alive")
    clients = await serve(dripped(bent, size=1))
    heard = await clients.ask(wire, stream=True)
    assert heard.text == plain.text
    assert [made[1:] for made in heard.calls] == [("look", {"at": "Zürich ☃"})]


async def test_redacted_thinking_is_a_seal_without_words(serve: Serve) -> None:
    clients = await serve(thinks("", sealed="xyz", then=says("Hm.")))
    for stream in (False, True):
        reply = await clients._messages(stream)
        assert [block.type for block in reply.content] == ["redacted_thinking", "text"]
        assert reply.content[0].data == "xyz"


JUDGES: dict[WireName, TypeAdapter[Any]] = {
    "chat": TypeAdapter(ChatCompletionChunk),
    "responses": TypeAdapter(ResponseStreamEvent),
    "messages": TypeAdapter(RawMessageStreamEvent),
}
WHOLE: dict[WireName, type[ChatCompletion] | type[Response] | type[Message]] = {
    "chat": ChatCompletion,
    "responses": Response,
    "messages": Message,
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
ASKED: dict[WireName, JsonObject] = {
    "chat": {"messages": HI, "stream_options": {"include_usage": True}},
    "responses": {"input": "hi"},
    "messages": {"messages": HI, "max_tokens": 100},
}
RICH = thinks("Think well.", then=calls_many(("a", {"x": 1}), ("b", {}), text="Now then."))


@pytest.mark.parametrize("step", [RICH, says("x", stop="length"), says_nothing()], ids=str)
@pytest.mark.parametrize("wire", WIRES)
async def test_every_event_is_valid_by_the_vendors_own_schema(wire: WireName, step: Step) -> None:
    async with (
        ScriptedServer([step]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(
            server.url + PATHS[wire],
            json={"model": "m", "stream": True, **ASKED[wire]},
            headers={"anthropic-version": "2023-06-01"},
        )
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    ends = data[-1:] == ["[DONE]"]
    assert ends == (wire == "chat")
    for event in data[:-1] if ends else data:
        JUDGES[wire].validate_python(json.loads(event), strict=True)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_whole_answer_is_valid_by_the_vendors_own_schema(wire: WireName) -> None:
    asked = {key: value for key, value in ASKED[wire].items() if key != "stream_options"}
    async with (
        ScriptedServer([RICH]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(
            server.url + PATHS[wire],
            json={"model": "m", **asked},
            headers={"anthropic-version": "2023-06-01"},
        )
    WHOLE[wire].model_validate(answer.json(), strict=True)


async def test_both_families_list_the_models(serve: Serve) -> None:
    clients = await serve(says("x"))
    assert [model.id async for model in clients.openai.models.list()] == ["scripted"]
    assert [model.id async for model in clients.anthropic.models.list()] == ["scripted"]
    assert [probe.path for probe in clients.server.probes] == ["/v1/models", "/v1/models"]


ERRORS = [
    (400, openai.BadRequestError, anthropic.BadRequestError),
    (401, openai.AuthenticationError, anthropic.AuthenticationError),
    (402, openai.APIStatusError, anthropic.APIStatusError),
    (403, openai.PermissionDeniedError, anthropic.PermissionDeniedError),
    (404, openai.NotFoundError, anthropic.NotFoundError),
    (413, openai.APIStatusError, anthropic.APIStatusError),
    (429, openai.RateLimitError, anthropic.RateLimitError),
    (500, openai.InternalServerError, anthropic.InternalServerError),
    (502, openai.InternalServerError, anthropic.InternalServerError),
    (503, openai.InternalServerError, anthropic.InternalServerError),
    (529, openai.InternalServerError, anthropic.InternalServerError),
]


@pytest.mark.parametrize(("status", "one", "two"), ERRORS)
async def test_the_sdks_know_every_error_status(
    serve: Serve, status: int, one: type[Exception], two: type[Exception]
) -> None:
    clients = await serve(fails(status))
    for wire in WIRES:
        with pytest.raises(two if wire == "messages" else one) as caught:
            await clients.ask(wire, stream=True)
        error: Any = caught.value
        assert error.status_code == status


async def test_calls_of_one_conversation_never_share_an_id() -> None:
    asked = {
        "model": "m",
        "messages": [
            *HI,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_41",
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_41", "content": "nothing"},
        ],
    }
    async with (
        ScriptedServer([calls("look")]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(f"{server.url}/v1/chat/completions", json=asked)
    assert answer.json()["choices"][0]["message"]["tool_calls"][0]["id"] == "call_42"
