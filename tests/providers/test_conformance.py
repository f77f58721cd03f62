"""What every wire format must be able to do, streamed and not, against a real server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from hermes.core.errors import ProviderError
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    user_says,
)
from hermes.core.prompt import CallNamed, ReasoningDelta, TextDelta
from hermes.net.http import USER_AGENT, HttpClient, Timeouts
from hermes.providers.profile import WireName
from hermes.providers.wire.events import MAX_DELTA_CHARS
from hermes.testing.faults import cut, dripped, fails_midway, flawed, garbled, hangs, paced
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import (
    Flaw,
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
    fails,
    overflows,
    says,
    thinks,
)
from tests.providers.asking import HI, KEY, WIRES, Heard, answered, ask, direct, then

pytestmark = [
    pytest.mark.parametrize("wire", WIRES),
    pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"]),
]
BENT: tuple[Flaw, ...] = (
    "crlf",
    "keep_alive",
    "no_end",
    "no_finish",
    "missing_ids",
    "object_arguments",
)
TEXT = "Twelve words, é and 😀 among them, that come in several pieces of text."


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server
        assert server.violations == []


class Line:
    """A provider of the wanted kind on the scripted server."""

    def __init__(
        self, wire: WireName, streams: bool, server: ScriptedServer, http: HttpClient
    ) -> None:
        self.wire = wire
        self.streams = streams
        self.server = server
        self.provider = direct(wire, server.url, http, streams=streams)

    async def hears(self, *steps: Step) -> Heard:
        self.server.add(*steps)
        return await ask(self.provider)


@pytest.fixture
def line(wire: WireName, streams: bool, server: ScriptedServer, http: HttpClient) -> Line:
    return Line(wire, streams, server, http)


async def test_text_comes_whole_and_in_deltas(line: Line) -> None:
    # Longer than what is ever joined, however much comes in one read.
    text = TEXT * (2 * MAX_DELTA_CHARS // len(TEXT) + 1)
    heard = await line.hears(paced(says(text), chunk=8))
    assert heard.shown == text
    assert heard.whole.message == AssistantMessage(parts=(Text(text=text),))
    assert (heard.whole.model, heard.whole.provider) == ("scripted", "scripted")
    assert (len(heard.deltas) > 1) == line.streams


async def test_the_request_says_who_we_are(line: Line) -> None:
    await line.hears(says("ok"))
    request = line.server.requests[0]
    assert request.headers["user-agent"] == USER_AGENT
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.stream == line.streams
    assert request.tools == ("look",)
    assert [(said.role, said.text) for said in request.messages] == [
        ("system", "Be brief."),
        ("user", "hi"),
    ]


async def test_parallel_calls_come_in_order_and_their_results_go_back(line: Line) -> None:
    heard = await line.hears(
        calls_many(("look", {"at": "a"}), ("look", {"at": "b"}), text="Let me see.")
    )
    message = heard.whole.message
    assert message.stop == "calls"
    assert message.text == "Let me see."
    assert [(c.name, c.arguments) for c in message.calls] == [
        ("look", {"at": "a"}),
        ("look", {"at": "b"}),
    ]
    assert [d for d in heard.deltas if isinstance(d, CallNamed)] == [CallNamed(name="look")] * 2
    line.server.add(says("done"))
    await ask(line.provider, then(HI, *answered(heard.whole, "seen")))
    results = line.server.requests[1].results
    assert [(r.call_id, r.text) for r in results] == [(c.id, "seen") for c in message.calls]


async def test_pictures_are_sent_and_missing_ones_are_named(line: Line, tmp_path: Path) -> None:
    cat = tmp_path / "cat.png"
    cat.write_bytes(b"not really a cat")
    gone = tmp_path / "gone.png"
    images = [Image(file=str(path), media_type="image/png") for path in (cat, gone)]
    prompt = msgspec.structs.replace(HI, messages=(user_says("what is it?", *images),))
    line.server.add(says("a cat"))
    await ask(line.provider, prompt)
    body = line.server.requests[0].raw.decode()
    assert base64.b64encode(b"not really a cat").decode() in body
    assert "image/png" in body
    assert "[picture: gone.png, not shown]" in body
    assert str(tmp_path) not in body


async def test_pictures_in_results_are_sent(line: Line, tmp_path: Path) -> None:
    cat = tmp_path / "cat.png"
    cat.write_bytes(b"cat")
    heard = await line.hears(calls("look", at="cat"))
    image = Image(file=str(cat), media_type="image/png")
    asked = heard.whole.message.calls[0]
    result = ToolResult(call_id=asked.id, name="look", parts=(Text(text="here"), image))
    line.server.add(says("a cat"))
    await ask(line.provider, then(HI, heard.whole.message, ToolMessage(results=(result,))))
    assert base64.b64encode(b"cat").decode() in line.server.requests[1].raw.decode()


async def test_reasoning_is_shown_kept_and_given_back_to_its_issuer(line: Line) -> None:
    heard = await line.hears(thinks("Hm, well.", then=calls("look", at="a")))
    message = heard.whole.message
    assert "".join(d.text for d in heard.deltas if isinstance(d, ReasoningDelta)) == "Hm, well."
    assert message.reasoning == "Hm, well."
    thought = message.parts[0]
    assert isinstance(thought, Reasoning) and thought.sealed is not None
    line.server.add(says("done"))
    await ask(line.provider, then(HI, *answered(heard.whole)))
    replayed = line.wire != "chat"
    assert ("Hm, well." in line.server.requests[1].raw.decode()) == replayed


async def test_reasoning_of_somebody_else_is_not_sent(line: Line) -> None:
    heard = await line.hears(thinks("Hm, well.", then=calls("look", at="a")))
    foreign = tuple(
        msgspec.structs.replace(part, issuer="elsewhere") if isinstance(part, Reasoning) else part
        for part in heard.whole.message.parts
    )
    reply = msgspec.structs.replace(
        heard.whole, message=AssistantMessage(parts=foreign, stop="calls")
    )
    line.server.add(says("done"))
    await ask(line.provider, then(HI, *answered(reply)))
    assert "Hm, well." not in line.server.requests[1].raw.decode()


async def test_inline_reasoning_is_taken_out_of_the_text(line: Line) -> None:
    step = paced(says("<think>Hm, well.</think>\n\nSo it is."), chunk=3)
    heard = await line.hears(step)
    assert heard.shown == heard.whole.message.text == "So it is."
    assert heard.whole.message.reasoning == "Hm, well."
    assert not any("<" in d.text for d in heard.deltas if isinstance(d, TextDelta))


async def test_usage_is_told_apart_by_kind(line: Line) -> None:
    cached = Usage(input=100, output=20, cache_read=800, cache_write=0, reasoning=0, requests=1)
    heard = await line.hears(says("ok", usage=cached))
    assert heard.whole.usage == cached


async def test_usage_is_guessed_where_none_is_told(line: Line) -> None:
    heard = await line.hears(flawed(says("four score and seven"), "no_usage"))
    usage = heard.whole.usage
    assert usage.estimated and usage.requests == 1
    assert usage.input > 10 and usage.output == 5


async def test_a_usage_estimate_knows_that_other_scripts_need_more_tokens(line: Line) -> None:
    heard = await line.hears(flawed(says("漢字" * 10), "no_usage"))
    assert heard.whole.usage.output == 22


@pytest.mark.parametrize("stop", ["length", "filtered"])
async def test_an_early_end_is_named(line: Line, stop: StopReason) -> None:
    step = says("partly", stop=stop)
    heard = await line.hears(step)
    assert heard.whole.message == AssistantMessage(parts=(Text(text="partly"),), stop=stop)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "format_error"),
        (401, "auth"),
        (402, "billing"),
        (404, "model_not_found"),
        (413, "payload_too_large"),
        (429, "rate_limit"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "overloaded"),
        (529, "overloaded"),
    ],
)
async def test_refusals_have_their_reason(line: Line, status: int, reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        await line.hears(fails(status))
    assert (caught.value.reason, caught.value.status) == (reason, status)
    assert KEY not in str(caught.value) + caught.value.body


async def test_an_overflow_tells_the_window(line: Line) -> None:
    with pytest.raises(ProviderError) as caught:
        await line.hears(overflows(32_768))
    assert (caught.value.reason, caught.value.limit) == ("context_overflow", 32_768)


async def test_a_wish_to_wait_is_told(line: Line) -> None:
    with pytest.raises(ProviderError) as caught:
        await line.hears(fails(429, retry_after=17))
    assert caught.value.retry_after == pytest.approx(17, abs=1)


async def test_a_connection_that_is_lost_before_the_answer_can_be_tried_again(line: Line) -> None:
    with pytest.raises(ProviderError) as caught:
        await line.hears(Step(failure=fails(0).failure), Step(failure=fails(0).failure))
    assert (caught.value.reason, caught.value.retryable) == ("cut", True)


@pytest.mark.parametrize("flaw", BENT)
async def test_bent_answers_are_understood(line: Line, flaw: Flaw) -> None:
    step = calls_many(("look", {"at": "a"}), ("look", {"at": "b"}), text=TEXT)
    heard = await line.hears(flawed(step, flaw))
    message = heard.whole.message
    assert message.text == TEXT
    assert [c.arguments for c in message.calls] == [{"at": "a"}, {"at": "b"}]
    assert not any(c.broken for c in message.calls)
    assert len({c.id for c in message.calls if c.id}) == 2


@pytest.mark.parametrize("flaw", ["same_index", "resent_name", "resent_arguments"])
async def test_calls_in_strange_pieces_are_put_together(line: Line, flaw: Flaw) -> None:
    step = paced(calls_many(("look", {"at": "a" * 60}), ("look", {"at": "b" * 60})), chunk=7)
    heard = await line.hears(flawed(step, flaw))
    found = [(c.name, c.arguments) for c in heard.whole.message.calls]
    assert found == [("look", {"at": "a" * 60}), ("look", {"at": "b" * 60})]


async def test_calls_with_neither_numbers_nor_ids_are_told_apart(line: Line) -> None:
    step = paced(calls_many(("look", {"at": "a" * 60}), ("look", {"at": "b" * 60})), chunk=7)
    heard = await line.hears(flawed(step, "same_index", "missing_ids"))
    found = [c.arguments for c in heard.whole.message.calls]
    assert found == [{"at": "a" * 60}, {"at": "b" * 60}]


async def test_the_same_id_twice_becomes_two(line: Line) -> None:
    step = calls_many(call("look", {"at": "a"}, id="x"), call("look", {"at": "b"}, id="x"))
    heard = await line.hears(step)
    assert [c.id for c in heard.whole.message.calls] == ["x", "x_2"]
    line.server.add(calls_many(call("look", {"at": "c"}, id="x")))
    again = await ask(line.provider, then(HI, *answered(heard.whole)))
    assert [c.id for c in again.whole.message.calls] == ["x_3"]


async def test_a_call_without_arguments_has_none(line: Line) -> None:
    heard = await line.hears(calls("look"))
    assert [(c.arguments, c.broken) for c in heard.whole.message.calls] == [({}, "")]


async def test_arguments_that_hit_the_output_limit_are_broken(line: Line) -> None:
    if line.wire == "messages" and not line.streams:
        pytest.skip("whole answers of this wire hold objects")
    heard = await line.hears(calls_cut_short("look", '{"at": "half'))
    message = heard.whole.message
    assert message.stop == "length"
    assert [bool(c.broken) for c in message.calls] == [True]
    assert '{"at": "half' in message.calls[0].broken


async def test_arguments_that_are_no_json_are_broken(line: Line) -> None:
    if line.wire == "messages" and not line.streams:
        pytest.skip("whole answers of this wire hold objects")
    heard = await line.hears(calls_raw("look", "at = here"))
    assert heard.whole.message.calls[0].broken.endswith("at = here")


async def test_bytes_that_drip_are_put_together(line: Line) -> None:
    heard = await line.hears(dripped(says(TEXT), size=3))
    assert heard.whole.message.text == TEXT


async def test_an_error_in_the_middle_keeps_what_was_shown(line: Line) -> None:
    if not line.streams:
        pytest.skip("there is no middle")
    heard = await line.hears(fails_midway(paced(says(TEXT), chunk=5), after_chunks=9))
    assert heard.whole.message.stop == "cut"
    assert TEXT.startswith(heard.shown) and heard.shown


async def test_half_an_event_counts_as_the_end(line: Line) -> None:
    if not line.streams:
        pytest.skip("there are no events")
    heard = await line.hears(garbled(paced(says(TEXT), chunk=5), after_chunks=9))
    assert heard.whole.message.stop == "cut"
    assert TEXT.startswith(heard.shown) and heard.shown


async def test_a_cut_at_any_byte_of_a_call_never_gives_a_call_that_could_run(line: Line) -> None:
    if not line.streams:
        pytest.skip("a whole answer that is cut is none")
    step = calls("look", at="here and there")
    line.server.add(step)
    whole = (await ask(line.provider)).whole.message.calls[0].arguments
    for size in range(0, 2400, 97):
        line.server.add(cut(step, after_bytes=size))
        try:
            message = (await ask(line.provider)).whole.message
        except ProviderError as error:
            assert error.retryable
            continue
        for made in message.calls:
            assert made.broken or made.arguments == whole


async def test_silence_is_not_waited_for_for_ever(
    line: Line, wire: WireName, streams: bool, http: HttpClient
) -> None:
    timeouts = Timeouts(read=0.2, stale=0.2, whole=0.2)
    provider = direct(wire, line.server.url, http, streams=streams, timeouts=timeouts)
    line.server.add(hangs())
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    assert (caught.value.reason, caught.value.retryable) == ("timeout", True)


async def test_keep_alives_alone_do_not_keep_an_answer_alive(
    line: Line, wire: WireName, streams: bool, http: HttpClient
) -> None:
    if not streams:
        pytest.skip("there are no keep-alives")
    timeouts = Timeouts(read=5.0, stale=0.2)
    provider = direct(wire, line.server.url, http, timeouts=timeouts)
    line.server.add(hangs(says(TEXT), after_chunks=1, comment_seconds=0.02))
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    assert caught.value.reason == "timeout"


async def test_leaving_closes_the_connection_at_once(line: Line) -> None:
    line.server.add(hangs(says(TEXT), after_chunks=4))
    asking = asyncio.create_task(ask(line.provider))
    await line.server.received.reaches(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(60):
        await line.server.departed.reaches(1)


async def test_who_stops_reading_closes_the_connection(line: Line) -> None:
    if not line.streams:
        pytest.skip("there is nothing to read before the end")
    line.server.add(hangs(paced(says(TEXT), chunk=5), after_chunks=9))
    async with asyncio.timeout(60), aclosing(line.provider.reply(HI)) as stream:
        assert isinstance(await anext(stream), TextDelta)
    async with asyncio.timeout(60):
        await line.server.departed.reaches(1)


async def test_a_call_of_another_message_kind_is_not_lost(line: Line) -> None:
    """A transcript that was made elsewhere, with everything that can be in it."""
    made = AssistantMessage(
        parts=(
            Reasoning(text="hm"),
            Text(text="I look."),
            ToolCall(id="toolu_01|fc_1", name="look", arguments={"b": 1, "a": [{"d": 1, "c": 2}]}),
        ),
        stop="calls",
    )
    result = ToolResult(
        call_id="toolu_01|fc_1", name="look", parts=(Text(text="seen"),), failed=True
    )
    line.server.add(says("ok"))
    prompt = then(HI, made, ToolMessage(results=(result,)), UserMessage(parts=(Text(text="so?"),)))
    await ask(line.provider, prompt)
    request = line.server.requests[0]
    spoken = [said for said in request.messages if said.role == "assistant"]
    (sent,) = [c for said in spoken for c in said.calls]
    assert "".join(said.text for said in spoken) == "I look."
    assert (sent.id, sent.arguments) == ("toolu_01_fc_1", '{"a":[{"c":2,"d":1}],"b":1}')
    assert request.last_text == "so?"
