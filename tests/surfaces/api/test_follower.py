"""Whatever is read of a run, in whatever pieces and with whatever breaks, is the run."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.events import (
    Event,
    MessageReceived,
    ReplyAdded,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from hermes.core.events import Record as Recorded
from hermes.core.messages import AssistantMessage, Text, ToolResult, Usage, user_says
from hermes.core.prompt import ReasoningDelta, Restarted, TextDelta
from hermes.surfaces.api.follower import Anew, Follower, Happened, Mark, Piece, parse_mark
from hermes.surfaces.api.run import Run

texts = st.lists(st.text(max_size=8), max_size=5)
replies = st.lists(texts, min_size=1, max_size=4)


def record(n: int, event: Event) -> Recorded:
    return Recorded(session_id="s", n=n, turn_id="t", at=0.0, event=event)


def reply(text: str) -> ReplyAdded:
    message = AssistantMessage(parts=(Text(text=text),))
    return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")


def story(written: list[list[str]]) -> list[Recorded]:
    """The records of a turn that writes these replies piece by piece."""
    told = [
        record(1, MessageReceived(message=user_says("hi"), key="run")),
        record(2, TurnStarted(takes=(1,))),
    ]
    n = 2
    for pieces in written:
        told += [record(0, ReasoningDelta(text="hm"))]
        told += [record(0, TextDelta(text=piece)) for piece in pieces]
        told.append(record(n := n + 1, reply("".join(pieces))))
        result = ToolResult(call_id="c", name="t", parts=())
        told.append(record(n := n + 1, ToolFinished(result=result)))
    return [*told, record(n + 1, TurnEnded(reason="done", usage=Usage()))]


def read(follower: Follower, heard: list[str], marks: list[Mark]) -> None:
    for moment in follower.read():
        marks.append(moment.mark)
        match moment:
            case Piece(text=text, is_text=True):
                heard.append(text)
            case Anew():
                heard.append("<anew>")
            case _:
                pass


@given(replies, st.integers(0, 40), st.integers(0, 40))
def test_a_reader_that_comes_and_goes_hears_all_once(
    written: list[list[str]], leaves: int, late: int
) -> None:
    async def whole() -> None:
        run, told = Run("run", "s", 0.0), story(written)
        heard: list[str] = []
        marks: list[Mark] = [Mark()]
        follower = Follower(run)
        for place, each in enumerate(told):
            run.take(each)
            if place == leaves:
                follower.close()
                again = parse_mark(str(marks[-1]))
                assert again is not None
                follower = Follower(run, again)
            if place >= late:
                read(follower, heard, marks)
        read(follower, heard, marks)
        assert follower.is_done
        assert "".join(heard) == "".join("".join(pieces) for pieces in written)

    asyncio.run(whole())


@given(st.text(min_size=1, max_size=20), st.text(max_size=20), st.integers(1, 20), st.booleans())
def test_a_reply_that_is_written_anew_goes_on_or_says_so(
    text: str, other: str, cut: int, same: bool
) -> None:
    """The process dies after some characters; the next one writes the same, or something else."""

    async def whole() -> None:
        first, second = Run("run", "s", 0.0), Run("run", "s", 0.0)
        heard: list[str] = []
        marks: list[Mark] = []
        beginning = text[:cut]
        for each in story([])[:2]:
            first.take(each)
            second.take(each)
        first.take(record(0, TextDelta(text=beginning)))
        read(Follower(first), heard, marks)
        assert heard == [beginning]
        again = text if same else other
        follower = Follower(second, parse_mark(str(marks[-1])))
        for letter in again:
            second.take(record(0, TextDelta(text=letter)))
            read(follower, heard, marks)
        second.take(record(3, reply(again)))
        read(follower, heard, marks)
        if again.startswith(beginning):
            assert "".join(heard) == again
        else:
            assert "".join(heard) == f"{beginning}<anew>{again}"

    asyncio.run(whole())


def test_a_stream_that_starts_over_in_one_process_goes_on_behind_what_was_said() -> None:
    async def whole() -> None:
        run = Run("run", "s", 0.0)
        heard: list[str] = []
        follower = Follower(run)
        for each in story([])[:2]:
            run.take(each)
        run.take(record(0, TextDelta(text="one two")))
        read(follower, heard, [])
        run.take(record(0, Restarted()))
        run.take(record(0, TextDelta(text="one ")))
        read(follower, heard, [])
        run.take(record(0, TextDelta(text="two three")))
        read(follower, heard, [])
        run.take(record(3, reply("one two three")))
        read(follower, heard, [])
        assert heard == ["one two", " three"]

    asyncio.run(whole())


@given(st.text(max_size=30))
def test_only_marks_are_read_as_marks(text: str) -> None:
    mark = parse_mark(text)
    assert mark is None or parse_mark(str(mark)) is not None


async def test_nothing_follows_the_end_although_the_last_words_were_never_written_down() -> None:
    run = Run("run", "s", 0.0)
    told = [
        each for each in story([["one"]]) if isinstance(each.event, MessageReceived | TurnStarted)
    ]
    unwritten = record(0, TextDelta(text="two"))
    run.take_all([*told, unwritten, record(3, TurnEnded(reason="interrupted", usage=Usage()))])
    *_, last = Follower(run).read()
    assert isinstance(last, Happened) and isinstance(last.record.event, TurnEnded)
