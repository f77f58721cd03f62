"""Segments written, read, merged and thinned out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.codec.json import encode
from hermes.journal.index import docs as sets
from hermes.journal.index.build import (
    BEGINS,
    SegmentBuilder,
    merge,
    role_term,
    session_term,
    size_term,
    without,
)
from hermes.journal.index.file import IndexFile, JournalPosition, SegmentInfo, create
from hermes.journal.index.segment import Segment
from hermes.journal.index.source import EventRow
from tests.journal.index.diary import event_of

WORDS = ["apple", "apples", "apply", "banana", "band", "zebra", "数据库", "a", "b7", "naïve"]
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    create(tmp_path / "index.db")
    with closing(IndexFile(tmp_path / "index.db")) as file:
        yield file


def row(id: int, text: str) -> EventRow:
    body = encode(event_of(text, "user"))
    return EventRow(id, f"s{id % 3}", id, "message_received", 1_000.0 + id, body)


def written(file: IndexFile, number: int, rows: list[EventRow]) -> SegmentInfo:
    draft = SegmentBuilder()
    for one in rows:
        draft.add(one)
    return draft.write(file, number)


def content(segment: Segment) -> tuple[dict[bytes, set[int]], list[int], list[int]]:
    """All that a segment knows, by the ids of messages."""
    ids = segment.ids()
    terms = {
        term: {ids[n] for n in sets.members(sets.decode(stored, segment.info.docs))}
        for term, stored in segment.postings()
    }
    return terms, ids, segment.seconds()


def found(segment: Segment, docs: sets.Docs) -> set[int]:
    return {segment.id_of(number) for number in sets.members(docs)}


def test_messages_are_found_by_term_stem_beginning_and_part(file: IndexFile) -> None:
    rows = [row(10 * n, text) for n, text in enumerate(WORDS, start=1)]
    segment = Segment(file, written(file, 1, rows))
    assert found(segment, segment.docs(b"apple")) == {10}
    assert found(segment, segment.docs(b"appl")) == set()
    assert found(segment, segment.docs_of_forms("appl")) == {10, 20, 30}
    assert found(segment, segment.docs_starting(b"ban")) == {40, 50}
    assert found(segment, segment.docs_starting("数".encode())) == {70}
    assert found(segment, segment.docs_starting(b"zz")) == set()
    parts = segment.docs_containing([b"pp", b"an", b"ser"], most=10)
    assert {part: found(segment, docs) for part, docs in parts.items()} == {
        b"pp": {10, 20, 30},
        b"an": {40, 50},
        b"ser": set(),
    }
    assert found(segment, segment.docs(role_term("user").encode())) == set(range(10, 110, 10))
    assert found(segment, segment.docs(session_term("s1").encode())) == {10, 40, 70, 100}


def test_rows_without_words_take_no_place(file: IndexFile) -> None:
    rows = [row(1, "apple"), row(2, ""), row(3, "banana")]
    info = written(file, 1, rows)
    assert (info.docs, info.last) == (2, JournalPosition(id=3, session_id="s0", n=3))
    assert Segment(file, info).ids() == [1, 3]


def test_a_large_segment_has_many_leaves(file: IndexFile) -> None:
    rows = [row(n, f"word{n} common other{n % 50} x{n * 7919 % 1000}") for n in range(1, 6_001)]
    segment = Segment(file, written(file, 1, rows))
    assert segment.info.leaves > 10
    assert sets.size_of(segment.docs(b"common")) == 6_000
    assert all(found(segment, segment.docs(b"word%d" % n)) == {n} for n in range(1, 6_001, 97))
    assert len(found(segment, segment.docs_starting(b"word"))) == 6_000
    assert len(found(segment, segment.docs_starting(b"other4"))) == 11 * 120
    assert found(segment, segment.docs_containing([b"rd5999"], most=9)[b"rd5999"]) == {5_999}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(texts, min_size=1, max_size=5))
def test_merged_segments_equal_one_made_of_all_rows(
    file: IndexFile, batches: list[list[str]]
) -> None:
    all_rows = [row(n, text) for n, text in enumerate((t for b in batches for t in b), start=5)]
    with file.writing():
        rest = list(all_rows)
        infos = []
        for number, batch in enumerate(batches, start=1):
            infos.append(written(file, number, rest[: len(batch)]))
            rest = rest[len(batch) :]
        merged = merge(file, 90, [Segment(file, info) for info in infos])
        whole = written(file, 91, all_rows)
        assert content(Segment(file, merged)) == content(Segment(file, whole))
        assert (merged.docs, merged.last) == (whole.docs, whole.last)
        assert (merged.oldest, merged.newest) == (whole.oldest, whole.newest)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, st.data())
def test_a_thinned_out_segment_knows_nothing_of_what_was_taken_out(
    file: IndexFile, some: list[str], data: st.DataObject
) -> None:
    rows = [row(n, text) for n, text in enumerate(some, start=1)]
    doomed = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=len(rows) - 1))
    with file.writing():
        segment = Segment(file, written(file, 1, rows))
        before, ids, seconds = content(segment)
        gone = {ids[number] for number in doomed}
        after = content(Segment(file, without(file, 2, segment, doomed, segment.info.last)))
        assert after == (
            {term: holders - gone for term, holders in before.items() if holders - gone},
            ids,
            seconds,
        )


def test_sizes_and_beginnings_are_bitmaps_in_every_segment(file: IndexFile) -> None:
    rows = [
        row(n, "a long remark about nothing much, " * 2 * (n % 7 > 0) + "yes") for n in range(900)
    ]
    small = [
        Segment(file, written(file, 1, rows[:300])),
        Segment(file, written(file, 2, rows[300:])),
    ]
    whole = Segment(file, merge(file, 3, small))
    thin = Segment(
        file, without(file, 4, whole, {0, 1}, JournalPosition(id=899, session_id="s", n=1))
    )
    for segment in (*small, whole, thin):
        for term in (BEGINS, size_term(0), size_term(1)):
            assert isinstance(segment.docs(term.encode()), bytes)
    short = {one.id for one in rows if one.id % 7 == 0}
    assert found(whole, whole.docs(size_term(0).encode())) == short
    assert found(thin, thin.docs(size_term(0).encode())) == short - {0}
