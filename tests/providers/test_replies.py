"""Any reply that a model gives is read back as it was given, however the bytes come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hermes.codec.values import JsonObject
from hermes.core.messages import AssistantMessage, Reasoning, StopReason, Text, ToolCall
from hermes.net.http import HttpClient
from hermes.providers.profile import WireName
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Pace, ReasoningForm, ScriptedCall, Step
from hermes.testing.wires.draft import seal, sealer
from tests.providers.asking import WIRES, ask, direct, endpoint
from tests.providers.transcripts import json_objects

MODEL = "scripted"
# In pieces of four signs the inner object begins like the outer one, so it looks like a repetition.
NESTED = Step(calls=(ScriptedCall(name="look", arguments={"": {"": None}}),), pace=Pace(chunk=4))

# A reply may talk of tags; one that uses them for its thoughts is another test's.
words = st.text(max_size=40).filter(lambda text: "<" not in text)
said = st.one_of(st.sampled_from(["", " ", "hi", "<thin", "a < b", "``` x", "😀" * 9]), words)
calls = st.builds(
    ScriptedCall,
    name=st.sampled_from(["look", "read_file", "a-b"]),
    arguments=json_objects(words),
    id=st.sampled_from([None, "toolu_01", "call|x", "", "c" * 60]),
)
paces = st.builds(Pace, chunk=st.integers(0, 30), drip=st.one_of(st.just(0), st.integers(1, 400)))


@st.composite
def answers(draw: st.DrawFn) -> Step:
    form: ReasoningForm = draw(st.sampled_from(["reasoning_content", "reasoning"]))
    made = draw(st.lists(calls, max_size=3).map(tuple))
    stop: StopReason | None = None if made else draw(st.sampled_from([None, "length", "filtered"]))
    return Step(
        text=draw(said),
        reasoning=draw(said),
        reasoning_form=form,
        calls=made,
        stop=stop,
        pace=draw(paces),
    )


def expected(step: Step, wire: WireName, ids: list[str]) -> AssistantMessage:
    """The reply in our words; `ids` are those of its calls, which the server may have chosen."""
    parts: list[Text | Reasoning | ToolCall] = []
    if step.reasoning:
        sealed = _sealed(step, wire)
        issuer = endpoint(wire, "http://127.0.0.1").issuer
        parts.append(Reasoning(text=step.reasoning, sealed=sealed, issuer=issuer))
    if step.text.strip():
        parts.append(Text(text=step.text))
    for call, id in zip(step.calls, ids, strict=True):
        parts.append(ToolCall(id=id, name=call.name, arguments=call.arguments))
    return AssistantMessage(parts=tuple(parts), stop=step.stops)


def _sealed(step: Step, wire: WireName) -> JsonObject:
    signature = seal(step.reasoning, sealer(wire, MODEL))
    if wire == "messages":
        return {"type": "thinking", "thinking": step.reasoning, "signature": signature}
    if wire == "responses":
        summary = [{"type": "summary_text", "text": step.reasoning}]
        return {"type": "reasoning", "summary": summary, "encrypted_content": signature}
    if step.reasoning_form == "reasoning_content":
        return {"reasoning_content": step.reasoning}
    detail = {"type": "reasoning.text", "text": step.reasoning, "index": 0, "signature": signature}
    return {"reasoning_details": [detail]}


class Ground:
    """One server and one client for many questions."""

    def __init__(self, runner: asyncio.Runner, server: ScriptedServer, http: HttpClient) -> None:
        self._runner = runner
        self._server = server
        self._http = http

    def heard(self, wire: WireName, step: Step, *, streams: bool) -> AssistantMessage:
        self._server.add(step)
        provider = direct(wire, self._server.url, self._http, streams=streams)
        return self._runner.run(ask(provider)).whole.message


@pytest.fixture
def ground() -> Iterator[Ground]:
    with asyncio.Runner() as runner, ScriptedServer.in_thread(keep=2) as server:
        http = HttpClient()
        yield Ground(runner, server, http)
        runner.run(http.aclose())
    assert server.violations == []


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_is_read_back_as_it_was_given(
    wire: WireName, streams: bool, ground: Ground
) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(answers())
    @example(NESTED)
    def holds(step: Step) -> None:
        found = ground.heard(wire, step, streams=streams)
        ids = [call.id for call in found.calls]
        assert len(set(ids)) == len(ids)
        assert found == expected(step, wire, ids)

    holds()
