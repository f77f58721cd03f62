"""The same steps inside the process."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from hermes.core.errors import ProviderError
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    user_says,
)
from hermes.core.ports import Provider
from hermes.core.prompt import (
    CallNamed,
    Delta,
    Prompt,
    ReasoningDelta,
    Reply,
    TextDelta,
    ToolSpec,
)
from hermes.testing.clock import VirtualClock
from hermes.testing.faults import cut, fails_midway, hangs, paced
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import (
    Step,
    call,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
    costs,
    drops,
    fails,
    overflows,
    says,
    thinks,
)

HI = Prompt(system="Be kind.", messages=(user_says("hi"),))


async def heard(provider: Provider, prompt: Prompt = HI) -> list[Delta | Reply]:
    async with aclosing(provider.reply(prompt)) as parts:
        return [part async for part in parts]


async def reply(*steps: Step, prompt: Prompt = HI) -> Reply:
    last = (await heard(ScriptedProvider(*steps), prompt))[-1]
    assert isinstance(last, Reply)
    return last


async def test_deltas_come_first_and_the_whole_reply_last() -> None:
    usage = Usage(input=5, output=3, requests=1)
    made = calls_many(call("look", {"at": "x"}, id="c1"), text="Let me see.")
    step = paced(costs(thinks("Well.", then=made, sealed="s"), usage), chunk=4)
    provider = ScriptedProvider(step)
    assert await heard(provider) == [
        ReasoningDelta(text="Well"),
        ReasoningDelta(text="."),
        TextDelta(text="Let "),
        TextDelta(text="me s"),
        TextDelta(text="ee."),
        CallNamed(name="look"),
        Reply(
            message=AssistantMessage(
                parts=(
                    Reasoning(text="Well.", sealed={"signature": "s"}, issuer="scripted"),
                    Text(text="Let me see."),
                    ToolCall(id="c1", name="look", arguments={"at": "x"}),
                ),
                stop="calls",
            ),
            usage=usage,
            model="scripted",
            provider="scripted",
        ),
    ]
    assert provider.prompts == [HI]
    assert provider.violations == []


async def test_ids_go_on_from_those_in_the_conversation() -> None:
    made = ToolCall(id="call_7", name="look")
    result = ToolResult(call_id="call_7", name="look", parts=(Text(text="x"),))
    said: tuple[Message, ...] = (
        user_says("hi"),
        AssistantMessage(parts=(made,), stop="calls"),
        ToolMessage(results=(result,)),
    )
    answer = await reply(calls_many(("a", {}), ("b", {})), prompt=Prompt(system="", messages=said))
    assert [one.id for one in answer.message.calls] == ["call_8", "call_9"]


async def test_broken_arguments_are_marked_and_not_guessed() -> None:
    (broken,) = (await reply(calls_raw("look", '{"at": '))).message.calls
    assert (broken.arguments, broken.broken) == (
        {},
        "The arguments are not JSON: Input data was truncated",
    )
    cut_short = await reply(calls_cut_short("look", '{"at'))
    assert cut_short.message.stop == "length"
    assert cut_short.message.calls[0].broken
    (whole,) = (await reply(calls_raw("look", '{"at": 1}'))).message.calls
    assert (whole.arguments, whole.broken) == ({"at": 1}, "")


FAILURES = [
    (fails(401), "auth", 401, False),
    (fails(402), "billing", 402, False),
    (fails(404), "model_not_found", 404, False),
    (fails(429, retry_after=3), "rate_limit", 429, True),
    (fails(529), "overloaded", 529, True),
    (overflows(8000), "context_overflow", 400, False),
    (drops(), "timeout", None, True),
    (cut(says("x"), after_chunks=0), "cut", None, True),
    (fails_midway(says("x"), after_chunks=1, status=500), "server_error", 500, True),
]


@pytest.mark.parametrize(("step", "reason", "status", "retryable"), FAILURES)
async def test_failures_are_provider_errors(
    step: Step, reason: str, status: int | None, retryable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        await reply(step)
    error = caught.value
    assert (error.reason, error.status, error.retryable) == (reason, status, retryable)
    assert error.retry_after == (3 if reason == "rate_limit" else None)
    assert error.limit == (8000 if reason == "context_overflow" else None)


@pytest.mark.parametrize(("after", "kept"), [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (99, 2)])
async def test_a_cut_after_bytes_leaves_whole_deltas(after: int, kept: int) -> None:
    provider = ScriptedProvider(cut(paced(says("abcdefgh"), chunk=4), after_bytes=after))
    got: list[object] = []
    with pytest.raises(ProviderError):
        async for part in provider.reply(HI):
            got.append(part)
    assert len(got) == kept


async def test_silence_ends_with_its_listener() -> None:
    provider = ScriptedProvider(hangs(paced(says("abcdef"), chunk=2), after_chunks=2))
    got: list[Delta | Reply] = []
    arrived = asyncio.Event()

    async def listen() -> None:
        async for part in provider.reply(HI):
            got.append(part)
            if len(got) == 2:
                arrived.set()

    task = asyncio.create_task(listen())
    async with asyncio.timeout(60):
        await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert got == [TextDelta(text="ab"), TextDelta(text="cd")]


async def test_waits_are_virtual_with_a_virtual_clock() -> None:
    clock = VirtualClock()
    step = paced(says("abcd"), chunk=2, first_seconds=60, between_seconds=5)
    await clock.run_until(heard(ScriptedProvider(step, clock=clock)))
    assert clock.monotonic() == 65


async def test_a_rule_reads_the_prompt() -> None:
    async def later(prompt: Prompt) -> Step:
        return says(f"{len(prompt.messages)} so far")

    for rule in (lambda prompt: says(f"{len(prompt.messages)} so far"), later):
        last = (await heard(ScriptedProvider(rule=rule)))[-1]
        assert isinstance(last, Reply)
        assert last.message.text == "1 so far"


async def test_the_script_ends_loops_and_grows() -> None:
    provider = ScriptedProvider(says("one"))
    await heard(provider)
    with pytest.raises(ProviderError, match="the script has only 1 steps"):
        await heard(provider)
    assert provider.violations == ["the script has only 1 steps"]
    provider.add(says("two"))
    assert (await heard(provider))[0] == TextDelta(text="two")
    looping = ScriptedProvider(says("x"), loop=True)
    assert await heard(looping) == await heard(looping)


LOOK = ToolCall(id="c1", name="look")
FOUND = ToolResult(call_id="c1", name="look", parts=())
SPEC = ToolSpec(name="look", description="", parameters={})

WRONG_PROMPTS: list[tuple[Prompt, str]] = [
    (Prompt(system="", messages=()), "does not begin with a user message"),
    (
        Prompt(system="", messages=(user_says("x"), AssistantMessage(parts=(LOOK,)))),
        "the calls ('c1',) have no results",
    ),
    (
        Prompt(
            system="", messages=(user_says("x"), AssistantMessage(parts=(LOOK,)), user_says("y"))
        ),
        "messages[2]: the calls ('c1',) have no results",
    ),
    (
        Prompt(system="", messages=(user_says("x"), ToolMessage(results=(FOUND,)))),
        "messages[1]: results ('c1',) for the calls ()",
    ),
    (Prompt(system="", messages=(user_says("x"),), tools=(SPEC, SPEC)), "two tools are named"),
]


@pytest.mark.parametrize(("prompt", "reason"), WRONG_PROMPTS)
async def test_a_prompt_that_breaks_the_rules_is_refused(prompt: Prompt, reason: str) -> None:
    provider = ScriptedProvider(says("x"))
    with pytest.raises(ProviderError) as caught:
        await heard(provider, prompt)
    assert caught.value.reason == "format_error"
    assert reason in provider.violations[0]
    lenient = ScriptedProvider(calls("x"), strict=False)
    assert isinstance((await heard(lenient, prompt))[-1], Reply)
