"""Error answers look like those of the vendors, as a status or in the middle of a stream."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from hermes.testing.faults import fails_midway, garbled
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails, overflows, says
from tests.testing.wires import BODIES, PATHS, VERSION, WIRES, WireName

TEXT = "one two three four five six seven eight"


async def ask(
    *steps: Step, wire: WireName = "chat", stream: bool = True, **more: Any
) -> httpx2.Response:
    async with (
        ScriptedServer(steps) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        asked = BODIES[wire] | {"stream": stream} | more
        return await http.post(server.url + PATHS[wire], json=asked, headers=VERSION)


def events(answer: httpx2.Response) -> list[Any]:
    lines = (line for line in answer.text.splitlines() if line.startswith("data: {"))
    return [json.loads(line[6:]) for line in lines]


async def test_a_rate_limit_comes_with_the_headers_of_its_wire() -> None:
    chat = await ask(fails(429, retry_after=2.5, headers={"x-request-id": "r1"}))
    assert chat.status_code == 429
    assert {k: v for k, v in chat.headers.items() if k.startswith(("retry", "x-"))} == {
        "retry-after": "2.5",
        "x-ratelimit-limit-requests": "50",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "2.5s",
        "x-request-id": "r1",
    }
    messages = await ask(fails(429, retry_after=60), wire="messages")
    assert messages.headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert messages.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert messages.json()["error"]["type"] == "rate_limit_error"


async def test_an_error_can_have_words_of_its_own() -> None:
    answer = await ask(fails(400, "thinking block is stale", kind="odd", code="invalid_thinking"))
    assert answer.json() == {
        "error": {
            "message": "thinking block is stale",
            "type": "odd",
            "param": None,
            "code": "invalid_thinking",
        }
    }
    page = await ask(fails(503, body="<h1>maintenance</h1>"))
    assert (page.text, page.headers["content-type"]) == ("<h1>maintenance</h1>", "text/html")


async def test_an_overflow_names_the_limit_as_the_vendors_do() -> None:
    chat = (await ask(overflows(8000))).json()["error"]
    assert chat["code"] == "context_length_exceeded"
    assert "maximum context length is 8000 tokens" in chat["message"]
    messages = (await ask(overflows(8000), wire="messages")).json()["error"]
    assert messages["message"] == "prompt is too long: 9000 tokens > 8000 maximum"


async def test_a_gateway_error_is_a_web_page() -> None:
    assert (await ask(fails(502))).text.startswith("<html>")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_can_come_inside_a_good_stream(wire: WireName) -> None:
    answer = await ask(fails_midway(says(TEXT), after_chunks=2, status=529), wire=wire)
    last = events(answer)[-1]
    assert answer.status_code == 200
    assert len(events(answer)) == 3
    match wire:
        case "chat":
            assert last["error"]["code"] == "overloaded"
        case "responses":
            assert (last["type"], last["sequence_number"]) == ("response.failed", 2)
            assert last["response"]["error"]["message"] == "The model is overloaded."
        case "messages":
            assert last["error"] == {"type": "overloaded_error", "message": "Overloaded"}


async def test_an_error_can_be_the_body_of_a_good_answer() -> None:
    answer = await ask(fails_midway(says(TEXT), after_chunks=0, status=500), stream=False)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, "server_error")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_event_can_be_broken_json(wire: WireName) -> None:
    whole = await ask(says("x"), wire=wire, stream=True)
    torn = await ask(garbled(says("x"), after_chunks=1), wire=wire)
    frames = torn.text.split("\n\n")
    name, _, data = frames[1].rpartition("data: ")
    assert frames[2].startswith(name + "data: " + data)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(data)
    assert len(frames) == len(whole.text.split("\n\n")) + 1


async def test_a_whole_answer_can_be_broken_json() -> None:
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        (await ask(garbled(says("x"), after_chunks=0), stream=False)).json()
