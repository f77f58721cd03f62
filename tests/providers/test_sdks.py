"""The vendors' own libraries as judges: of the requests we send, and of how we read answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types import message_create_params
from hypothesis import HealthCheck, given, settings
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import TypeAdapter, ValidationError

from hermes.codec.values import replace
from hermes.core.messages import Message
from hermes.providers.direct import WIRES as WIRE_CLASSES
from hermes.providers.grammar import valid
from hermes.providers.http import Http
from hermes.providers.profile import ModelProfile, WireName
from hermes.providers.wire.pictures import Pictures
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls_many, says, thinks
from tests.providers.asking import HI, KEY, WIRES, ask, direct, endpoint
from tests.providers.conversations import growing_conversation

PROFILES = {
    "chat": ModelProfile(effort="flat"),
    "responses": ModelProfile(replay="sealed", effort="responses"),
    "messages": ModelProfile(replay="sealed", marks="native", effort="adaptive"),
}


def params(wire: WireName) -> Any:
    return {
        "chat": completion_create_params.CompletionCreateParamsStreaming,
        "responses": response_create_params.ResponseCreateParamsStreaming,
        "messages": message_create_params.MessageCreateParamsStreaming,
    }[wire]


def exhausted(value: Any) -> None:
    """The libraries check the items of a list only when they are taken out."""
    if isinstance(value, Mapping):
        for item in value.values():
            exhausted(item)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for item in value:
            exhausted(item)


def as_stored(body: dict[str, Any]) -> dict[str, Any]:
    """The library types assistant items as the server stored them, with ids; we store none."""
    for number, item in enumerate(body.get("input", [])):
        if item.get("role") == "assistant":
            item |= {"id": f"msg_{number}", "status": "completed"}
            for part in item["content"]:
                part["annotations"] = []
        elif item["type"] == "reasoning":
            item["id"] = f"rs_{number}"
    return body


@pytest.mark.parametrize("wire", WIRES)
def test_requests_have_the_types_of_the_vendors_library(wire: WireName) -> None:
    adapter = TypeAdapter[Any](params(wire))
    profile = PROFILES[wire]
    at = endpoint(wire, "http://127.0.0.1", profile)

    @settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    @given(growing_conversation(wire))
    def judged(messages: tuple[Message, ...]) -> None:
        made = WIRE_CLASSES[wire](at, profile, life="5m", pictures=Pictures())
        prompt = replace(HI, messages=messages, max_tokens=500, effort="high")
        body = json.loads(made.encode(prompt, valid(messages)))
        exhausted(adapter.validate_python(as_stored(body)))

    judged()


@pytest.mark.parametrize("wire", WIRES)
def test_the_judges_do_refuse(wire: WireName) -> None:
    listed = {"role": "user", "content": 5} if wire != "responses" else {"type": "message"}
    name = "input" if wire == "responses" else "messages"
    with pytest.raises(ValidationError):
        body = {"model": "m", "max_tokens": 5, "stream": True, name: [listed]}
        exhausted(TypeAdapter[Any](params(wire)).validate_python(body))


STEPS = (
    says("Words, é and 😀, in several pieces, that are long enough for that."),
    calls_many(("look", {"at": "a"}), ("look", {"at": "b", "n": [1, 2]}), text="I look."),
    thinks("Hm, well.", then=says("So.")),
)
Heard = tuple[str, list[tuple[str, Any]]]


async def by_openai_chat(url: str) -> Heard:
    async with (
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client,
        client.chat.completions.stream(
            model="scripted", messages=[{"role": "user", "content": "hi"}]
        ) as stream,
    ):
        message = (await stream.get_final_completion()).choices[0].message
    made = message.tool_calls or []
    return message.content or "", [
        (call.function.name, json.loads(call.function.arguments)) for call in made
    ]


async def by_openai_responses(url: str) -> Heard:
    async with (
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client,
        client.responses.stream(model="scripted", input="hi") as stream,
    ):
        response = await stream.get_final_response()
    made = [item for item in response.output if item.type == "function_call"]
    return response.output_text, [(call.name, json.loads(call.arguments)) for call in made]


async def by_anthropic(url: str) -> Heard:
    async with (
        anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(
            model="scripted", max_tokens=100, messages=[{"role": "user", "content": "hi"}]
        ) as stream,
    ):
        message = await stream.get_final_message()
    made = [block for block in message.content if block.type == "tool_use"]
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [(block.name, block.input) for block in made]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("wire", WIRES)
async def test_answers_are_read_as_the_vendors_library_reads_them(
    wire: WireName, step: Any, http: Http
) -> None:
    judges = {"chat": by_openai_chat, "responses": by_openai_responses, "messages": by_anthropic}
    async with ScriptedServer([step, step]) as server:
        theirs = await judges[wire](server.url)
        message = (await ask(direct(wire, server.url, http))).whole.message
    assert (message.text, [(c.name, c.arguments) for c in message.calls]) == theirs
