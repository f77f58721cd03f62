"""What goes wrong goes wrong exactly where the script says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.testing.clock import VirtualClock
from hermes.testing.faults import (
    cut,
    dripped,
    flawed,
    hangs,
    paced,
)
from hermes.testing.observers import WaitableCounter
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import (
    Flaw,
    ScriptedCall,
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
    drops,
    says,
    thinks,
)
from tests.testing.wires import BODIES, PATHS, VERSION, WIRES, WireName

TEXT = "one two three four five six seven eight"


async def exchange(step: Step, wire: WireName, *, stream: bool = True) -> bytes:
    """All bytes that the server sends for one request, until it closes or the answer is whole."""
    async with ScriptedServer([step], clock=VirtualClock()) as server:
        port = int(server.url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        raw = json.dumps(BODIES[wire] | {"stream": stream}).encode()
        head = f"POST {PATHS[wire]} HTTP/1.1\r\nanthropic-version: 1\r\nconnection: close\r\n"
        writer.write(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


def body_of(answer: bytes) -> bytes:
    """The body of an answer in chunked coding, as far as it came."""
    rest = answer.partition(b"\r\n\r\n")[2]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


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


def call_deltas(answer: httpx2.Response) -> list[JsonObject]:
    deltas = (e["choices"][0]["delta"] for e in events(answer) if e["choices"])
    return [made for delta in deltas for made in delta.get("tool_calls", [])]


# Cuts


@settings(max_examples=25, deadline=None)
@given(count=st.integers(0, 700), wire=st.sampled_from(WIRES))
def test_a_stream_can_be_cut_after_any_byte(count: int, wire: WireName) -> None:
    async def both() -> tuple[bytes, bytes]:
        step = says(TEXT)
        return await exchange(step, wire), await exchange(cut(step, after_bytes=count), wire)

    whole, part = asyncio.run(both())
    assert body_of(part) == body_of(whole)[:count]
    assert not part.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_can_be_cut_after_any_event(wire: WireName) -> None:
    step = paced(says(TEXT), chunk=8)
    whole = body_of(await exchange(step, wire)).split(b"\n\n")
    for count in range(4):
        part = body_of(await exchange(cut(step, after_chunks=count), wire))
        assert part.split(b"\n\n")[:-1] == whole[:count]


async def test_a_whole_answer_can_be_cut_too() -> None:
    for step in (cut(says(TEXT), after_bytes=30), cut(says(TEXT), after_chunks=1)):
        with pytest.raises(httpx2.RemoteProtocolError):
            await ask(step, stream=False)


async def test_a_connection_can_be_reset() -> None:
    with pytest.raises(httpx2.ReadError):
        await ask(cut(paced(says(TEXT), first_seconds=0.01), after_chunks=0, reset=True))


async def test_a_connection_can_be_dropped_without_a_byte() -> None:
    assert await exchange(drops(), "chat") == b""


# Silence and pace


@pytest.mark.parametrize("after", [None, 0, 2])
async def test_silence_lasts_until_the_client_leaves(after: int | None) -> None:
    step = hangs(paced(says(TEXT), chunk=8), after_chunks=after)
    seen, events_seen = bytearray(), WaitableCounter()

    async def listen(url: str) -> None:
        asked = BODIES["chat"] | {"stream": True}
        async with (
            httpx2.AsyncClient(verify=False, timeout=60) as http,
            http.stream("POST", url, json=asked) as answer,
        ):
            async for data in answer.aiter_bytes():
                seen.extend(data)
                while events_seen.count < seen.count(b"data: "):
                    events_seen.add()

    async with ScriptedServer([step]) as server:
        task = asyncio.create_task(listen(server.url + PATHS["chat"]))
        await server.received.reaches(1)
        await events_seen.reaches(after or 0)
        await asyncio.sleep(0.02)
        assert not task.done()
        assert server.departed.count == 0
        task.cancel()
        await server.departed.reaches(1)
    assert events_seen.count == (after or 0)


async def test_comments_can_break_the_silence() -> None:
    step = hangs(says(TEXT), after_chunks=1, comment_seconds=0.005)
    async with (
        ScriptedServer([step]) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        url, seen = server.url + PATHS["chat"], ""
        async with http.stream("POST", url, json=BODIES["chat"] | {"stream": True}) as answer:
            async for text in answer.aiter_text():
                seen += text
                if seen.count(": keep-alive\n\n") >= 3:
                    break
    assert seen.count("data: ") == 1


async def test_waits_are_taken_from_the_clock_of_the_server() -> None:
    waits: list[float] = []

    class Counting:
        def now(self) -> float:
            return 5.5

        def monotonic(self) -> float:
            return 0.0

        async def sleep(self, seconds: float) -> None:
            waits.append(seconds)

    step = paced(says("abcdef"), chunk=3, first_seconds=20, between_seconds=7)
    async with (
        ScriptedServer([step], clock=Counting()) as server,
        httpx2.AsyncClient(verify=False, timeout=60) as http,
    ):
        answer = await http.post(server.url + PATHS["chat"], json=BODIES["chat"] | {"stream": True})
    # role, two pieces of text, finish, [DONE], and the empty chunk that ends the body
    assert waits == [20, 7, 7, 7, 7, 7]
    assert events(answer)[0]["created"] == 5
    assert server.requests[0].at == 5.5


async def test_a_drip_comes_in_small_writes() -> None:
    whole = await exchange(says("Grüße"), "chat")
    dripping = await exchange(dripped(says("Grüße"), size=3), "chat")
    assert body_of(dripping) == body_of(whole)


# Bent formats


def ids_of(answer: httpx2.Response, wire: WireName) -> list[str | None]:
    match wire:
        case "chat":
            found = call_deltas(answer)
            return [made.get("id") for made in found if "name" in made["function"]]
        case "responses":
            items = [e["item"] for e in events(answer) if e["type"].endswith("item.done")]
            return [item.get("call_id") for item in items]
        case "messages":
            starts = [e for e in events(answer) if e["type"] == "content_block_start"]
            return [e["content_block"].get("id") for e in starts]


@pytest.mark.parametrize("wire", WIRES)
async def test_ids_can_be_doubled_empty_or_missing(wire: WireName) -> None:
    doubled = await ask(calls_many(call("a", id="x"), call("b", id="x")), wire=wire)
    empty = await ask(calls_many(call("a", id=""), call("b", id="")), wire=wire)
    missing = await ask(flawed(calls_many(("a", {}), ("b", {})), "missing_ids"), wire=wire)
    assert ids_of(doubled, wire) == ["x", "x"]
    assert ids_of(empty, wire) == ["", ""]
    assert ids_of(missing, wire) == [None, None]


async def test_all_calls_can_have_index_zero() -> None:
    answer = await ask(flawed(calls_many(("a", {}), ("b", {"x": 1})), "same_index"))
    assert {made["index"] for made in call_deltas(answer)} == {0}


async def test_names_and_arguments_can_be_sent_again() -> None:
    step = paced(calls("look", at="the long horizon"), chunk=8)
    answer = await ask(flawed(step, "resent_name", "resent_arguments"))
    made = call_deltas(answer)
    assert {delta["function"]["name"] for delta in made} == {"look"}
    assert {delta["id"] for delta in made} == {"call_1"}
    assert made[-1]["function"]["arguments"] == '{"at":"the long horizon"}'
    pieces = [delta["function"]["arguments"] for delta in made[:-1]]
    assert "".join(pieces) == '{"at":"the long horizon"}'


@pytest.mark.parametrize("stream", [False, True])
async def test_arguments_can_be_an_object(stream: bool) -> None:
    answer = await ask(flawed(calls("look", at="x"), "object_arguments"), stream=stream)
    made = call_deltas(answer) if stream else answer.json()["choices"][0]["message"]["tool_calls"]
    assert [one["function"]["arguments"] for one in made] == [{"at": "x"}]
    other = await ask(flawed(calls("look", at="x"), "object_arguments"), wire="responses")
    done = [e for e in events(other) if e["type"] == "response.output_item.done"]
    assert done[0]["item"]["arguments"] == {"at": "x"}


def sent_arguments(answer: httpx2.Response, wire: WireName) -> str:
    match wire:
        case "chat":
            return "".join(made["function"]["arguments"] for made in call_deltas(answer))
        case "responses":
            deltas = [e for e in events(answer) if e["type"].endswith("arguments.delta")]
            return "".join(e["delta"] for e in deltas)
        case "messages":
            deltas = [e["delta"] for e in events(answer) if e["type"] == "content_block_delta"]
            return "".join(delta["partial_json"] for delta in deltas)


@pytest.mark.parametrize("wire", WIRES)
async def test_arguments_can_be_broken_or_cut_short(wire: WireName) -> None:
    broken = await ask(calls_raw("look", '{"at": '), wire=wire)
    short = await ask(calls_cut_short("look", '{"at": '), wire=wire)
    assert sent_arguments(broken, wire) == sent_arguments(short, wire) == '{"at": '
    mark = {"chat": '"length"', "responses": '"max_output_tokens"', "messages": '"max_tokens"'}
    assert mark[wire] in short.text
    assert mark[wire] not in broken.text


END_MARKS: dict[tuple[Flaw, WireName], str] = {
    ("no_end", "chat"): "[DONE]",
    ("no_end", "messages"): "message_stop",
    ("no_finish", "chat"): '"finish_reason":"stop"',
    ("no_finish", "messages"): '"end_turn"',
    ("no_finish", "responses"): "response.completed",
    ("no_usage", "chat"): '"usage"',
    ("no_usage", "messages"): '"usage"',
    ("no_usage", "responses"): '"input_tokens"',
}


@pytest.mark.parametrize(("flaw", "wire"), END_MARKS)
async def test_the_end_can_lack_something(flaw: Flaw, wire: WireName) -> None:
    more: JsonObject = {"stream_options": {"include_usage": True}} if wire == "chat" else {}
    mark = END_MARKS[flaw, wire]
    assert mark in (await ask(says("x"), wire=wire, **more)).text
    assert mark not in (await ask(flawed(says("x"), flaw), wire=wire, **more)).text


async def test_reasoning_has_the_form_that_the_chat_server_gives_it() -> None:
    def deltas(answer: httpx2.Response) -> list[JsonObject]:
        return [e["choices"][0]["delta"] for e in events(answer)[1:-1]]

    plain = await ask(thinks("Hm.", then=says("Yes.")))
    assert deltas(plain) == [{"reasoning_content": "Hm."}, {"content": "Yes."}]
    signed = await ask(thinks("Hm.", then=says("Yes."), form="reasoning", sealed="s"))
    assert deltas(signed) == [
        {
            "reasoning": "Hm.",
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "index": 0}],
        },
        {
            "reasoning_details": [
                {"type": "reasoning.text", "text": "", "index": 0, "signature": "s"}
            ]
        },
        {"content": "Yes."},
    ]
    inline = await ask(thinks("Hm.", then=says("Yes."), form="inline"))
    text = "".join(delta["content"] for delta in deltas(inline))
    assert text == "<think>\nHm.\n</think>\n\nYes."


async def test_half_a_surrogate_pair_is_sent_as_an_escape() -> None:
    answer = await ask(paced(says("\ud83d\ude00"), chunk=1))
    assert '"content":"\\ud83d"' in answer.text
    assert '"content":"\\ude00"' in answer.text
    whole = await ask(calls("look", at="\ud83d"), stream=False)
    assert "\\\\ud83d" in whole.text


def test_a_call_can_be_written_as_a_value() -> None:
    wanted = ScriptedCall(name="look", arguments={"at": "x"}, id="c1")
    assert calls_many(call("look", {"at": "x"}, id="c1")) == Step(calls=(wanted,))
