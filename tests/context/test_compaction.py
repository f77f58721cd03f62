"""Shortening a conversation: what stays, what gives way, and when it stops trying."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.config.session_settings import CompressionSettings
from hermes.context.block import BLOCK_BEGINS, BLOCK_ENDS
from hermes.context.budget import EngineDeps, budget_for, messages_tokens
from hermes.context.engine import BuiltInEngine
from hermes.core.commands import Compact, Rewind
from hermes.core.errors import ProviderError, UsageError
from hermes.core.events import (
    CallSettled,
    Compacted,
    DurableEvent,
    MessageReceived,
    ModelCalled,
    Record,
    ReplyAdded,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
    user_says,
)
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.session_deps import CompactionRequest
from hermes.core.transcript import Transcript, fold
from hermes.core.world import SystemClock
from hermes.testing.provider import find_problems
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, calls_many, overflows, says
from tests.context.ground import Stage, compactions, say, stage

NOTES = "Goal: the bridge."

Words = tuple[str, list[tuple[str, int]]]


class Meterless:
    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        return least

    def settle(self, settled: CallSettled) -> None:
        """Nothing is counted."""


def transcript_of(*turns: Words) -> Transcript:
    """Turns of words, calls with results of so many characters, and a last answer."""
    events: list[DurableEvent] = []
    for number, (words, results) in enumerate(turns):
        events.append(MessageReceived(message=user_says(words)))
        events.append(TurnStarted(takes=(len(events),)))
        for at, (name, size) in enumerate(results):
            call = ToolCall(id=f"call_{number}_{at}", name=name, arguments={"path": f"{at}.txt"})
            events.append(_reply(call))
            result = ToolResult(call_id=call.id, name=name, parts=(Text(text="r" * size),))
            events.append(ToolFinished(result=result))
        events.append(_reply(Text(text=f"Answer {number}.")))
        events.append(TurnEnded(reason="done", usage=Usage()))
    return fold(
        Record(session_id="s", n=n, turn_id="t", at=0.0, event=event)
        for n, event in enumerate(events, start=1)
    )


def _reply(part: ToolCall | Text) -> ReplyAdded:
    message = AssistantMessage(parts=(part,))
    return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")


def engine(notes: str = NOTES, **rules: object) -> BuiltInEngine:
    async def summarise(_prompt: Prompt, _meter: Meter) -> Reply:
        if not notes:
            raise ProviderError("down", reason="auth")
        said = AssistantMessage(parts=(Text(text=notes),))
        return Reply(message=said, usage=Usage(), model="m", provider="p")

    own = CompressionSettings(**rules)  # type: ignore[arg-type]
    return BuiltInEngine(EngineDeps("s-1", summarise, clock=SystemClock(), rules=own))


def prompt_of(transcript: Transcript) -> Prompt:
    return Prompt(system="You are tested.", messages=transcript.seen)


async def shortened(
    transcript: Transcript, window: int, made: BuiltInEngine | None = None, **how: object
) -> Compacted | None:
    occasion = CompactionRequest(window=window, **how)  # type: ignore[arg-type]
    working = made or engine()
    return await working.compact(transcript, prompt_of(transcript), occasion, Meterless())


def apply(transcript: Transcript, made: Compacted) -> None:
    transcript.apply(Record(session_id="s", n=999, turn_id="", at=0.0, event=made))


TURNS = st.lists(
    st.tuples(
        st.sampled_from(("Go on.", "Never use tabs. Go on.", "wörter 日本 " * 30, "x" * 3_000)),
        st.lists(
            st.tuples(st.sampled_from(("terminal", "read_file")), st.integers(0, 9_000)), max_size=4
        ),
    ),
    min_size=2,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(
    turns=TURNS, window=st.sampled_from((4_000, 8_192, 32_000)), notes=st.sampled_from(("", NOTES))
)
def test_whatever_was_said_the_result_is_valid_and_smaller(
    turns: list[Words], window: int, notes: str
) -> None:
    transcript = transcript_of(*turns)
    working = engine(notes)
    for cause in ("threshold", "asked"):
        before = messages_tokens(transcript.seen)
        made = asyncio.run(shortened(transcript, window, working, cause=cause))
        if made is None:
            continue
        apply(transcript, made)
        assert messages_tokens(transcript.seen) < before
        request = Prompt(system="s", messages=(*transcript.seen, user_says("And now?")))
        assert list(find_problems(request)) == []
        room = budget_for(window, 10, CompressionSettings())
        assert messages_tokens(transcript.seen) <= room.limit or _is_incompressible(transcript)
        everything = "\n".join(_text(message) for message in transcript.seen)
        if any("Never use tabs" in words for words, _ in turns):
            assert "Never use tabs." in everything


def _is_incompressible(transcript: Transcript) -> bool:
    """Only words that people said are left."""
    spoken = [m for m in transcript.seen if isinstance(m, UserMessage)]
    return messages_tokens(spoken) > messages_tokens(transcript.seen) // 2


def _text(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return "\n".join(result.text for result in message.results)
    return message.text


async def test_old_results_become_lines_that_say_where_they_are() -> None:
    transcript = transcript_of(("Go.", [("terminal", 6_000)] * 6), ("More.", []))
    made = await shortened(transcript, 8_192)
    assert made is not None
    assert (made.summarised, made.summary) == (0, "")
    lines = [m.results[0].text for m in made.head if isinstance(m, ToolMessage)]
    assert lines[0] == "[terminal 0.txt: 1 lines, 6000 characters; message 4]"
    assert transcript.seen == tuple(transcript.messages)
    apply(transcript, made)
    assert transcript.seen[0] == user_says("Go.")


async def test_the_block_carries_rules_request_and_the_way_back() -> None:
    turns: list[Words] = [(f"Step {n}. " + "words " * 300, []) for n in range(12)]
    turns[1] = ("Never deploy on Fridays. " + "words " * 300, [])
    transcript = transcript_of(*turns)
    made = await shortened(transcript, 8_192, cause="asked", topic="deploys")
    assert made is not None and made.summary == NOTES
    first, *_, block = made.head
    text = _text(block)
    assert text.startswith(BLOCK_BEGINS) and text.endswith(BLOCK_ENDS)
    assert "- [5] Never deploy on Fridays." in text
    assert f"## Summary\n{NOTES}" in text
    assert _text(first) == turns[0][0], "it is kept as it is, so the block does not repeat it"
    assert "## How it began" not in text
    bare = await shortened(transcript, 8_192, engine(protect_first_n=0), cause="asked")
    assert bare is not None
    (block,) = bare.head
    assert "## How it began, verbatim\nStep 0." in _text(block)


async def test_the_first_messages_are_kept_by_the_first_compaction_only() -> None:
    transcript = transcript_of(*((f"Step {n}. " + "words " * 100, []) for n in range(40)))
    made = await shortened(transcript, 32_000, cause="asked")
    assert made is not None
    assert made.head[:3] == tuple(transcript.messages[:3])
    assert len(made.head) == 4 and _text(made.head[3]).startswith(BLOCK_BEGINS)
    apply(transcript, made)
    more = transcript_of(*((f"Later {n}. " + "words " * 100, []) for n in range(40)))
    transcript.turn_starts += [len(transcript.messages) + at for at in more.turn_starts]
    transcript.messages += more.messages
    second = await shortened(transcript, 32_000, engine("Goal: newer."), cause="asked")
    assert second is not None
    assert len(second.head) == 1 and "Goal: newer." in _text(second.head[0])


async def test_a_first_call_is_not_kept_without_its_result() -> None:
    turns: list[Words] = [("Go.", [("terminal", 30)] * 2)]
    turns += [(f"Step {n}. " + "words " * 100, []) for n in range(40)]
    transcript = transcript_of(*turns)
    made = await shortened(transcript, 32_000, engine(protect_first_n=2), cause="asked")
    assert made is not None
    assert [_text(each) for each in made.head[:-1]] == ["Go."]


async def test_a_second_summary_takes_the_place_of_the_first() -> None:
    transcript = transcript_of(*((f"Step {n}. " + "words " * 300, []) for n in range(12)))
    first = await shortened(transcript, 8_192, cause="asked")
    assert first is not None
    apply(transcript, first)
    more = transcript_of(*((f"Later {n}. " + "words " * 300, []) for n in range(8)))
    transcript.turn_starts += [len(transcript.messages) + at for at in more.turn_starts]
    transcript.messages += more.messages
    second = await shortened(transcript, 8_192, engine("Goal: newer."), cause="asked")
    assert second is not None
    apply(transcript, second)
    blocks = [m for m in transcript.seen if _text(m).startswith(BLOCK_BEGINS)]
    assert len(blocks) == 1
    assert "Goal: newer." in _text(blocks[0])
    assert second.summarised > first.summarised


async def test_the_last_exchanges_stay_when_that_is_asked_for() -> None:
    transcript = transcript_of(*((f"Step {n}. " + "words " * 100, []) for n in range(8)))
    made = await shortened(transcript, 100_000, cause="asked", keep=2)
    assert made is not None
    apply(transcript, made)
    assert transcript.seen[1:] == tuple(transcript.messages[-4:])


async def test_a_rewind_behind_the_cut_shows_the_originals_again() -> None:
    transcript = transcript_of(*((f"Step {n}. " + "words " * 100, []) for n in range(6)))
    made = await shortened(transcript, 100_000, cause="asked")
    assert made is not None
    apply(transcript, made)
    transcript._rewind(4)
    assert transcript.seen == tuple(transcript.messages)
    assert len(transcript.messages) == 4


async def test_without_gain_it_is_not_tried_again_soon() -> None:
    transcript = transcript_of(("x" * 30_000, []))
    working = engine()
    assert working.due(transcript, prompt_of(transcript), 8_400)
    tried = await shortened(transcript, 60_000, working)
    assert tried is None
    assert not working.due(transcript, prompt_of(transcript), 8_600)


def test_a_switched_off_engine_is_never_due() -> None:
    transcript = transcript_of(("x" * 40_000, []))
    assert not engine(enabled=False).due(transcript, prompt_of(transcript), 8_192)


@pytest.mark.parametrize(
    ("window", "threshold"),
    [(8_192, 6_963), (16_384, 13_926), (128_000, 96_000), (200_000, 150_000), (1_000_000, 500_000)],
)
def test_when_it_begins_depends_on_the_window(window: int, threshold: int) -> None:
    assert budget_for(window, 2_000, CompressionSettings()).threshold == threshold


async def test_a_request_that_is_too_long_is_cut_and_answered(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("Hm."), window=8_192) as ground:
        async with ground.session() as (_, session):
            ended = await say(session, "word " * 12_000)
            again = await say(session, "And now?")
        assert (ended.reason, again.reason) == ("done", "done")
        assert b"characters left out" in ground.chats[0].raw


async def test_what_cannot_be_made_to_fit_ends_the_turn_in_words(tmp_path: Path) -> None:
    words = "Mind this. " * 4_000
    async with stage(
        tmp_path, lambda _: says("Hm."), window=8_192, agent__system_prompt=words
    ) as ground:
        async with ground.session() as (_, session):
            ended = await say(session, "Hello?")
        assert (ended.reason, ended.detail) == ("failed", "ContextFull")
        assert "no longer fits into the model's 8,192 tokens" in ended.error
        assert ground.chats == []


async def test_a_window_that_is_smaller_than_it_was_thought_is_learned(tmp_path: Path) -> None:
    told: list[int] = []

    def rule(request: Request) -> Step:
        told.append(len(request.raw) // 4)
        return overflows(9_000) if told[-1] > 9_000 else says("words " * 800)

    async with stage(tmp_path, rule, window=100_000) as ground, ground.session() as (app, session):
        for number in range(12):
            ended = await say(session, f"Tell me {number}. Always count.")
            assert ended.reason == "done"
        made = compactions(await app.journal.read(session.id))
    assert made[0].cause == "overflow"
    assert sum(size > 9_000 for size in told) == 1
    assert b"Always count." in ground.chats[-1].raw


async def test_a_person_asks_for_it_and_sees_what_it_would_be(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("words " * 400), window=100_000) as ground:
        async with ground.session() as (app, session):
            with pytest.raises(UsageError, match="nothing to compact"):
                await session.send(Compact())
            for number in range(6):
                await say(session, f"Tell me {number}.")
            outlook = session.preview_compaction(Compact(topic="numbers"))
            assert session.transcript.compactions == []
            await session.send(Compact(topic="numbers"))
            (made,) = compactions(await app.journal.read(session.id))
            assert outlook is not None
            assert outlook.tokens_before == made.tokens_before
            await say(session, "And now?")
            await session.send(Rewind(turns=1))
        (asked,) = ground.summaries
        assert "Focus on this topic: numbers" in asked.messages[-1].text
        assert ground.server.violations == []


async def test_next_to_no_gain_is_no_reason_to_begin_anew(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        wants = request.last_text.startswith("Read") and not request.results
        return calls("read_file", path="a.txt") if wants else says("Fine.")

    async with stage(tmp_path, rule, window=100_000, notes=None) as ground:
        ground.file("a.txt", lines=40)
        async with ground.session() as (app, session):
            for words in ("Read it.", "Good." + " words" * 3_000, "Go on." + " words" * 3_000):
                await say(session, words)
            with pytest.raises(UsageError, match="nothing to compact"):
                await session.send(Compact())
            assert compactions(await app.journal.read(session.id)) == []
        assert ground.summaries


async def test_a_file_out_of_view_is_shown_again_when_it_is_asked_for(tmp_path: Path) -> None:
    async def scene(ground: Stage) -> None:
        ground.file("a.txt", lines=5)
        async with ground.session() as (app, session):
            await say(session, "Read it.")
            await say(session, "words " * 2_000)
            await say(session, "Good.")
            await session.send(Compact())
            await say(session, "Read it again.")
            results = [
                r.event.result.text
                for r in await app.journal.read(session.id)
                if isinstance(r.event, ToolFinished)
            ]
        assert len(results) == 2
        assert results[0] == results[1]

    def rule(request: Request) -> Step:
        wants = request.last_text.startswith("Read") and not request.results
        return calls("read_file", path="a.txt") if wants else says("Fine.")

    async with stage(tmp_path, rule, window=100_000) as ground:
        await scene(ground)


async def test_many_large_results_at_once_are_cut_to_fit(tmp_path: Path) -> None:
    reads = [("read_file", {"path": f"big{n}.txt"}) for n in range(6)]

    def rule(request: Request) -> Step:
        return says("All seen.") if request.results else calls_many(*reads)

    async with stage(tmp_path, rule, window=8_192) as ground, ground.session() as (_, session):
        for number in range(6):
            ground.file(f"big{number}.txt", lines=200)
        ended = await say(session, "Read all six at once.")
        assert (ended.reason, ended.error) == ("done", "")
        assert ground.server.violations == []
