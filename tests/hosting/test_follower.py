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
from hermes.hosting.follower import (
    RecordAdded,
    ReplyRestarted,
    RunFollower,
    StreamPosition,
    TextPiece,
    parse_position,
)
from hermes.hosting.run import Run

texts = st.lists(st.text(max_size=8), max_size=5)
replies = st.lists(texts, min_size=1, max_size=4)


def record(n: int, event: Event) -> Recorded:
    return Recorded(session_id="s", n=n, turn_id="t", at=0.0, event=event)


def reply(text: str) -> ReplyAdded:
    message = AssistantMessage(parts=(Text(text=text),))
    return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")


def story(written: list[list[str]]) -> list[Recorded]:
    """The records of a turn that writes these replies piece by piece."""
    records = [
        record(1, MessageReceived(message=user_says("hi"), key="run")),
        record(2, TurnStarted(takes=(1,))),
    ]
    n = 2
    for pieces in written:
        records += [record(0, ReasoningDelta(text="hm"))]
        records += [record(0, TextDelta(text=piece)) for piece in pieces]
        records.append(record(n := n + 1, reply("".join(pieces))))
        result = ToolResult(call_id="c", name="t", parts=())
        records.append(record(n := n + 1, ToolFinished(result=result)))
    return [*records, record(n + 1, TurnEnded(reason="done", usage=Usage()))]


def read(follower: RunFollower, heard: list[str], marks: list[StreamPosition]) -> None:
    for moment in follower.read():
        marks.append(moment.mark)
        match moment:
            case TextPiece(text=text, is_text=True):
                heard.append(text)
            case ReplyRestarted():
                heard.append("<anew>")
            case _:
                pass


def assert_forward(marks: list[StreamPosition]) -> None:
    """Ids, compared as numbers from left to right, never decrease."""
    ids = [tuple(map(int, str(mark).split(".")[:3])) for mark in marks]
    assert ids == sorted(ids)


@given(replies, st.integers(0, 40), st.integers(0, 12))
def test_a_reader_right_after_a_restart_hears_what_it_missed_once(
    written: list[list[str]], heard_of: int, read_first: int
) -> None:
    """The server died at any record, and the reader is back before the run is loaded again."""

    async def whole() -> None:
        first, second, records = Run("run", "s", 0.0), Run("run", "s", 0.0), story(written)
        numbers: list[int] = []
        heard: list[str] = []
        marks: list[StreamPosition] = [StreamPosition()]

        def listen(follower: RunFollower) -> None:
            for moment in follower.read():
                marks.append(moment.mark)
                if isinstance(moment, RecordAdded):
                    numbers.append(moment.record.n)
                elif isinstance(moment, TextPiece) and moment.is_text:
                    heard.append(moment.text)
                else:
                    assert not isinstance(moment, ReplyRestarted)

        first.apply_all(records[:heard_of])
        listen(RunFollower(first))
        follower = RunFollower(second, parse_position(str(marks[-1])))
        durable = [each for each in records[:heard_of] if each.n]
        for each in durable:
            second.apply(each)
            if len(second.records) >= read_first:
                listen(follower)
        # The model writes the reply again whose text was not durable.
        past = max((place for place, each in enumerate(records[:heard_of]) if each.n), default=-1)
        for each in records[past + 1 :]:
            second.apply(each)
            listen(follower)
        assert numbers == [each.n for each in records if each.n]
        assert "".join(heard) == "".join("".join(pieces) for pieces in written)
        assert_forward(marks)

    asyncio.run(whole())


@given(replies, st.integers(0, 40), st.integers(0, 40))
def test_a_reader_that_comes_and_goes_hears_all_once(
    written: list[list[str]], leaves: int, late: int
) -> None:
    async def whole() -> None:
        run, records = Run("run", "s", 0.0), story(written)
        heard: list[str] = []
        marks: list[StreamPosition] = [StreamPosition()]
        follower = RunFollower(run)
        for place, each in enumerate(records):
            run.apply(each)
            if place == leaves:
                follower.close()
                again = parse_position(str(marks[-1]))
                assert again is not None
                follower = RunFollower(run, again)
            if place >= late:
                read(follower, heard, marks)
        read(follower, heard, marks)
        assert follower.is_done
        assert "".join(heard) == "".join("".join(pieces) for pieces in written)
        assert_forward(marks)

    asyncio.run(whole())


@given(st.text(min_size=1, max_size=20), st.text(max_size=20), st.integers(1, 20), st.booleans())
def test_a_reply_that_is_written_anew_goes_on_or_says_so(
    text: str, other: str, cut: int, same: bool
) -> None:
    """The process dies after some characters; the next one writes the same, or something else."""

    async def whole() -> None:
        first, second = Run("run", "s", 0.0), Run("run", "s", 0.0)
        heard: list[str] = []
        marks: list[StreamPosition] = []
        beginning = text[:cut]
        for each in story([])[:2]:
            first.apply(each)
            second.apply(each)
        first.apply(record(0, TextDelta(text=beginning)))
        read(RunFollower(first), heard, marks)
        assert heard == [beginning]
        again = text if same else other
        follower = RunFollower(second, parse_position(str(marks[-1])))
        for letter in again:
            second.apply(record(0, TextDelta(text=letter)))
            read(follower, heard, marks)
        second.apply(record(3, reply(again)))
        read(follower, heard, marks)
        if again.startswith(beginning):
            assert "".join(heard) == again
        else:
            assert "".join(heard) == f"{beginning}<anew>{again}"
        assert_forward(marks)

    asyncio.run(whole())


def test_a_stream_that_starts_over_in_one_process_goes_on_behind_what_was_said() -> None:
    async def whole() -> None:
        run = Run("run", "s", 0.0)
        heard: list[str] = []
        follower = RunFollower(run)
        for each in story([])[:2]:
            run.apply(each)
        run.apply(record(0, TextDelta(text="one two")))
        read(follower, heard, [])
        run.apply(record(0, Restarted()))
        run.apply(record(0, TextDelta(text="one ")))
        read(follower, heard, [])
        run.apply(record(0, TextDelta(text="two three")))
        read(follower, heard, [])
        run.apply(record(3, reply("one two three")))
        read(follower, heard, [])
        assert heard == ["one two", " three"]

    asyncio.run(whole())


@given(st.text(max_size=30))
def test_only_marks_are_read_as_marks(text: str) -> None:
    mark = parse_position(text)
    assert mark is None or parse_position(str(mark)) is not None


async def test_nothing_follows_the_end_although_the_last_words_were_never_written_down() -> None:
    run = Run("run", "s", 0.0)
    records = [
        each for each in story([["one"]]) if isinstance(each.event, MessageReceived | TurnStarted)
    ]
    unwritten = record(0, TextDelta(text="two"))
    run.apply_all([*records, unwritten, record(3, TurnEnded(reason="interrupted", usage=Usage()))])
    *_, last = RunFollower(run).read()
    assert isinstance(last, RecordAdded) and isinstance(last.record.event, TurnEnded)
