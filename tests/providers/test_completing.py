from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
)
from hermes.core.prompt import (
    CallNamed,
    Delta,
    Notice,
    Prompt,
    ReasoningDelta,
    Reply,
    Restarted,
    TextDelta,
)
from hermes.core.world import World
from hermes.providers.completion import (
    ANSWER_PROMPT,
    CONTINUE_PROMPT,
    RESULTS_PROMPT,
    CompletingProvider,
)
from hermes.providers.normalization import ConversationNormalizer
from tests.providers.asking import HI, Heard, Listed, NapClock, ask, then

ONE = Usage(input=10, output=5, requests=1)
Answer = list[Delta | Reply | ProviderError]


def reply(*parts: Text | Reasoning | ToolCall, stop: StopReason = "done") -> Answer:
    """An answer as the wire gives it: deltas that fit its parts, then the reply."""
    deltas: Answer = []
    for part in parts:
        match part:
            case Text(text=text):
                deltas.append(TextDelta(text=text))
            case Reasoning(text=text):
                deltas.append(ReasoningDelta(text=text))
            case ToolCall(name=name):
                deltas.append(CallNamed(name=name))
    message = AssistantMessage(parts=parts, stop=stop)
    return [*deltas, Reply(message=message, usage=ONE, model="m", provider="p")]


def text(words: str, stop: StopReason = "done") -> Answer:
    return reply(Text(text=words), stop=stop)


def broken(stop: StopReason) -> Answer:
    return reply(ToolCall(id="c", name="look", broken="cut"), stop=stop)


CALL = ToolCall(id="c", name="look", arguments={"at": "x"})
EMPTY = reply()
ERROR = ProviderError("Out of order.", reason="server_error")


class Run:
    def __init__(self, *answers: Answer) -> None:
        self.clock = NapClock()
        self.inner = Listed(*answers)
        world = World(clock=self.clock, chance=random.Random(1))
        self.provider = CompletingProvider(self.inner, world)

    async def hear(self, prompt: Prompt = HI) -> Heard:
        return await ask(self.provider, prompt)

    @property
    def added(self) -> list[tuple[Message, ...]]:
        """What was said to the model beyond the prompt, per request."""
        return [prompt.messages[len(HI.messages) :] for prompt in self.inner.prompts]


async def test_a_whole_answer_passes_through() -> None:
    heard = await Run(text("ok")).hear()
    assert [*heard.deltas, heard.whole] == text("ok")


async def test_an_answer_that_hit_the_limit_is_continued_and_joined() -> None:
    run = Run(text("one ", "length"), text("two ", "cut"), text("three"))
    heard = await run.hear()
    assert heard.shown == heard.whole.message.text == "one two three"
    assert heard.whole.message == AssistantMessage(parts=(Text(text="one two three"),))
    assert heard.whole.usage == Usage(input=30, output=15, requests=3)
    assert not any(isinstance(delta, Restarted) for delta in heard.deltas)
    said = [[getattr(message, "text", "") for message in added] for added in run.added]
    assert said == [[], ["one ", CONTINUE_PROMPT], ["one two ", CONTINUE_PROMPT]]


async def test_four_continuations_are_all() -> None:
    run = Run(*(text("x", "length") for _ in range(6)))
    heard = await run.hear()
    assert heard.whole.message == AssistantMessage(parts=(Text(text="xxxxx"),), stop="length")
    assert len(run.inner.prompts) == 5


async def test_a_continuation_may_end_in_calls() -> None:
    heard = await Run(text("I look. ", "cut"), reply(Text(text="Now."), CALL, stop="calls")).hear()
    assert heard.whole.message == AssistantMessage(
        parts=(Text(text="I look. Now."), CALL), stop="calls"
    )


async def test_a_thought_in_a_continuation_keeps_only_its_words() -> None:
    first = Reasoning(text="a", sealed={"x": 1}, issuer="i")
    second = Reasoning(text="b", sealed={"x": 2}, issuer="i")
    heard = await Run(
        reply(first, Text(text="one "), stop="length"), reply(second, Text(text="two"))
    ).hear()
    assert heard.whole.message.parts == (first, Reasoning(text="b"), Text(text="one two"))


@pytest.mark.parametrize("answer", [EMPTY, [ERROR]])
async def test_what_was_read_stays_when_nothing_more_comes(answer: Answer) -> None:
    heard = await Run(text("as far as ", "cut"), answer).hear()
    assert heard.whole.message == AssistantMessage(
        parts=(Text(text="as far as "),), stop=("done" if answer is EMPTY else "cut")
    )
    assert heard.shown == "as far as "
    warned = [d for d in heard.deltas if isinstance(d, Notice)]
    assert len(warned) == (0 if answer is EMPTY else 1)


async def test_a_failure_before_anything_was_read_is_a_failure() -> None:
    with pytest.raises(ProviderError):
        await Run([ERROR]).hear()


async def test_truncated_arguments_are_asked_for_again_with_more_room() -> None:
    run = Run(*(broken("length") for _ in range(3)), reply(CALL, stop="calls"))
    heard = await run.hear(replace(HI, max_tokens=1_000))
    assert heard.whole.message.calls == (CALL,)
    assert [p.max_tokens for p in run.inner.prompts] == [1_000, 2_000, 4_000, 8_000]
    assert sum(isinstance(d, Restarted) for d in heard.deltas) == 3
    assert heard.whole.usage.requests == 4


async def test_the_room_for_an_answer_has_an_end() -> None:
    run = Run(*(broken("length") for _ in range(5)))
    await run.hear()
    assert [p.max_tokens for p in run.inner.prompts] == [None, 8_192, 16_384, 32_768, 32_768]


async def test_calls_that_stay_broken_are_handed_over_as_such() -> None:
    run = Run(*(broken("cut") for _ in range(5)))
    heard = await run.hear()
    assert len(run.inner.prompts) == 5
    assert [c.broken for c in heard.whole.message.calls] == ["cut"]
    assert heard.whole.message.stop == "calls"


async def test_unreadable_arguments_are_asked_for_twice_more() -> None:
    run = Run(*(broken("calls") for _ in range(3)))
    heard = await run.hear()
    assert len(run.inner.prompts) == 3
    assert heard.whole.message.calls[0].broken
    assert not any(isinstance(d, Notice) for d in heard.deltas)


async def test_text_before_a_broken_call_is_shown_once() -> None:
    bad = ToolCall(id="c", name="look", broken="cut")
    run = Run(
        text("Kept. ", "cut"),
        reply(Text(text="Void."), bad, stop="cut"),
        reply(Text(text="Then."), CALL, stop="calls"),
    )
    heard = await run.hear()
    assert heard.shown == heard.whole.message.text == "Kept. Then."


async def test_a_restart_inside_a_continuation_keeps_what_was_read() -> None:
    again: Answer = [TextDelta(text="void"), Restarted(), *text("two")]
    heard = await Run(text("one ", "cut"), again).hear()
    assert heard.shown == "one two"


def results() -> Prompt:
    asked = AssistantMessage(parts=(CALL,), stop="calls")
    seen = ToolResult(call_id="c", name="look", parts=(Text(text="seen"),))
    return then(HI, asked, ToolMessage(results=(seen,)))


async def test_silence_after_results_is_nudged_once() -> None:
    run = Run(EMPTY, text("Here it is."))
    heard = await run.hear(results())
    assert heard.whole.message.text == "Here it is."
    assert [getattr(m, "text", "") for m in run.inner.prompts[1].messages[-2:]] == [
        "(no answer)",
        RESULTS_PROMPT,
    ]
    assert run.clock.naps == []


async def test_a_thought_alone_is_asked_for_its_answer_twice() -> None:
    thought = reply(Reasoning(text="hm"))
    run = Run(thought, thought, text("So."))
    heard = await run.hear()
    assert heard.shown == "So."
    assert [getattr(m, "text", "") for m in run.added[1]] == ["hm", ANSWER_PROMPT]
    assert run.clock.naps == []


async def test_the_ladder_ends_with_words() -> None:
    run = Run(EMPTY, reply(Reasoning(text="hm")), reply(Reasoning(text="hm")), *[EMPTY] * 4)
    heard = await run.hear(results())
    assert len(run.inner.prompts) == 7
    assert [low <= nap <= low * 1.5 for low, nap in zip((5, 10, 20), run.clock.naps, strict=True)]
    assert heard.whole.message.text == "(empty)\nThe model gave no answer in 7 attempts."
    assert heard.shown == heard.whole.message.text
    assert heard.whole.usage.requests == 7
    assert run.inner.prompts[-1] == results()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(stop="filtered"), "content filter"),
        (reply(Reasoning(text="hm"), stop="length"), "lower the reasoning effort"),
    ],
)
async def test_some_silences_are_explained_at_once(answer: Answer, why: str) -> None:
    run = Run(answer)
    heard = await run.hear()
    assert heard.whole.message.text.startswith("(empty)\n")
    assert why in heard.whole.message.text
    assert len(run.inner.prompts) == 1


parts = st.lists(
    st.sampled_from(
        [
            Text(text="words "),
            Text(text=" "),
            Reasoning(text="hm"),
            CALL,
            ToolCall(id="d", name="look", broken="why"),
        ]
    ),
    max_size=3,
)
stops = st.sampled_from(["done", "calls", "length", "filtered", "cut"])


@given(st.lists(st.tuples(parts, stops), min_size=30, max_size=30))
async def test_whatever_comes_ends_in_a_valid_reply_that_was_shown(
    answers: list[tuple[list[Text | Reasoning | ToolCall], StopReason]],
) -> None:
    run = Run(*(reply(*said, stop=stop) for said, stop in answers))
    heard = await run.hear()
    message = heard.whole.message
    assert message.text.strip() or message.calls
    assert heard.shown == message.text
    assert heard.whole.usage.requests == len(run.inner.prompts) <= 20
    assert ConversationNormalizer().normalize((*HI.messages, message))[1].parts  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("complete ", "complete answer", "complete answer"),
        ("The", "The answer is 42.", "The answer is 42."),
        ("The answer to your question is f", "The answer to your question is 42.",
         "The answer to your question is 42."),
        ("Berlin is the capital of Germany and", "capital of Germany and has four million.",
         "Berlin is the capital of Germany and has four million."),
        ("One, two,", " three.", "One, two, three."),
        ("It is very, very", " very good.", "It is very, very very good."),
        ("```py\nx = 1\n", "y = 1\n```", "```py\nx = 1\ny = 1\n```"),
    ],
)  # fmt: skip
async def test_a_repeated_beginning_is_not_glued_to_the_first_half(
    first: str, second: str, whole: str
) -> None:
    answers = Listed(reply(Text(text=first), stop="cut"), reply(Text(text=second)))
    heard = await ask(CompletingProvider(answers, World(clock=NapClock())))
    assert heard.whole.message.text == whole
    assert heard.shown == whole
