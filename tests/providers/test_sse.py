from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import ProviderError
from hermes.net.sse import SseEvent, SseParser


def read(data: bytes, cuts: tuple[int, ...] = (), *, finish: bool = True) -> list[SseEvent]:
    reader = SseParser()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    events = [event for a, b in pairwise(places) for event in reader.feed(data[a:b])]
    return [*events, *reader.finish()] if finish else events


STREAM = (
    b'\xef\xbb\xbf: hello\n\nevent: one\ndata: {"a": 1}\n\n'
    b"id: 7\nretry: 5\ndata:two\ndata:  lines\n\n\n: keep-alive\n\ndata: \xf0\x9f\x98\x80\n\n"
)
EVENTS = [
    SseEvent("one", b'{"a": 1}'),
    SseEvent("", b"two\n lines"),
    SseEvent("", "😀".encode()),
]


@given(
    st.lists(st.integers(0, 200), max_size=8).map(tuple), st.sampled_from([b"\n", b"\r\n", b"\r"])
)
def test_events_are_the_same_wherever_the_bytes_are_split(
    cuts: tuple[int, ...], line_end: bytes
) -> None:
    assert read(STREAM.replace(b"\n", line_end), cuts) == EVENTS


def test_an_event_without_its_empty_line_counts_only_at_the_end() -> None:
    assert read(b"data: last\n", finish=False) == []
    assert read(b"data: last\n") == [SseEvent("", b"last")]


def test_comments_and_unknown_fields_make_no_event() -> None:
    assert read(b": ping\n\nfoo: bar\n\nevent: lonely\n\n") == []


def test_an_event_beyond_the_budget_is_an_error() -> None:
    reader = SseParser(max_event_bytes=100)
    reader.feed(b"data: " + b"x" * 90)
    with pytest.raises(ProviderError) as caught:
        reader.feed(b"x" * 90)
    assert caught.value.retryable


def test_many_small_events_may_exceed_the_budget_together() -> None:
    reader = SseParser(max_event_bytes=100)
    assert len(reader.feed(b"data: x\n\n" * 1000)) == 1000


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5).map(tuple))
def test_any_bytes_are_read_without_a_crash(data: bytes, cuts: tuple[int, ...]) -> None:
    read(data, cuts)
