"""Writes segments: from new rows, by merging segments, or without some of their messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from sys import byteorder

from hermes.journal.index import docs as sets
from hermes.journal.index.file import IndexFile, JournalPosition, SegmentInfo
from hermes.journal.index.segment import (
    PLACES_PER_BLOCK,
    Segment,
    encode_leaf,
    encode_places,
    merge_sorted,
)
from hermes.journal.index.source import ROLES, EventRow, text_of
from hermes.journal.index.terms import fold, terms

MOST_DOCS = 65_536
"""The most messages per segment: their numbers fit into two bytes."""

_TERMS_BYTES = 4_096
_DOCS_BYTES = 8_192
_LATEST = (1 << 32) - 1


def session_term(session_id: str) -> str:
    """Return the term that all messages of a session share. No word begins with a control
    character."""
    storable = session_id.encode("utf-8", "replace").decode()
    return "\x01s" + storable.replace("\n", "\x02")


def role_term(role: str) -> str:
    return "\x01r" + role


BEGINS = "\x01b"
"""The term of messages that begin a session in the index."""

SIZES = ((40, 0.6), (90, 0.8), (1_500, 1.0), (1 << 30, 0.6))
"""Message lengths and their weight: very short messages are mostly answers, very long ones mostly
printouts."""


def size_term(size: int) -> str:
    return f"\x01l{size}"


_ASKED_OF_EACH = (BEGINS.encode(), size_term(0)[:-1].encode())


def size_of(characters: int) -> int:
    return next(size for size, (below, _) in enumerate(SIZES) if characters < below)


def seconds_of(at: float) -> int:
    """Return whole seconds in four bytes; times before 1970 or after 2106 are clamped."""
    return int(min(max(at, 0.0), _LATEST)) if at == at else 0


class SegmentBuilder:
    """A segment that grows in memory."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._seconds: list[int] = []
        self._postings: defaultdict[str, bytearray] = defaultdict(bytearray)
        self.last: JournalPosition | None = None
        self.characters = 0

    def add(self, row: EventRow) -> None:
        text = text_of(row)
        if not text:
            return
        number = len(self.ids).to_bytes(2, byteorder)
        postings = self._postings
        for term in terms(fold(text)):
            postings[term] += number
        postings[session_term(row.session_id)] += number
        postings[role_term(ROLES[row.kind])] += number
        if SIZES[size := size_of(len(text))][1] < 1:
            postings[size_term(size)] += number
        if self.last is None or self.last.session_id != row.session_id:
            postings[BEGINS] += number
        self.ids.append(row.id)
        self._seconds.append(seconds_of(row.at))
        self.last = place_of(row)
        self.characters += len(text)

    def write(self, file: IndexFile, number: int) -> SegmentInfo:
        assert self.last is not None
        count = len(self.ids)
        postings = (
            (term.encode(), sets.encode(packed, count))
            for term, packed in sorted(self._postings.items(), key=itemgetter(0))
        )
        return _write(file, number, postings, self.ids, self._seconds, self.last)


def place_of(row: EventRow) -> JournalPosition:
    return JournalPosition(id=row.id, session_id=row.session_id, n=row.n)


def merge(file: IndexFile, number: int, segments: Sequence[Segment]) -> SegmentInfo:
    """Merge several neighbours into one segment with their messages in order."""
    total = sum(segment.info.docs for segment in segments)

    def merge_postings() -> Iterator[tuple[bytes, bytes]]:
        starts = accumulate((segment.info.docs for segment in segments), initial=0)
        streams = list(map(_leaves, segments, starts))
        for batch in merge_sorted(streams, itemgetter(0)):
            for term, parts in groupby(batch, itemgetter(0)):
                yield term, sets.join([part[1:] for part in parts], total)

    ids = [id for segment in segments for id in segment.ids()]
    seconds = [second for segment in segments for second in segment.seconds()]
    return _write(file, number, merge_postings(), ids, seconds, segments[-1].info.last)


def without(
    file: IndexFile, number: int, segment: Segment, removed: set[int], last: JournalPosition
) -> SegmentInfo:
    """Return the segment with only the positions of the removed messages left."""
    count = segment.info.docs
    postings = ((term, sets.without(stored, removed, count)) for term, stored in segment.postings())
    non_empty = ((term, stored) for term, stored in postings if stored)
    return _write(file, number, non_empty, segment.ids(), segment.seconds(), last)


_Part = tuple[bytes, int, bytes, int]
"""A term, the number of the segment's first message, the stored set, the segment's size."""


def _leaves(segment: Segment, start: int) -> Iterator[list[_Part]]:
    count = segment.info.docs
    for leaf in segment.postings_by_leaf():
        yield [(term, start, stored, count) for term, stored in leaf]


def _write(
    file: IndexFile,
    number: int,
    postings: Iterable[tuple[bytes, bytes]],
    ids: list[int],
    seconds: list[int],
    last: JournalPosition,
) -> SegmentInfo:
    # Session starts and lengths are bitmaps however few there are, so that searches need not decode
    # them.
    stored_as_read = (
        (term, sets.as_bitmap(docs, len(ids)) if term.startswith(_ASKED_OF_EACH) else docs)
        for term, docs in postings
    )
    firsts = _write_leaves(file, number, stored_as_read)
    file.put(number, "root", 0, b"\n".join(firsts))
    for part, start in enumerate(range(0, len(ids), PLACES_PER_BLOCK)):
        end = start + PLACES_PER_BLOCK
        file.put(number, "places", part, encode_places(ids[start:end], seconds[start:end]))
    return SegmentInfo(
        number=number,
        docs=len(ids),
        leaves=len(firsts),
        oldest=min(seconds),
        newest=max(seconds),
        last=last,
    )


def _write_leaves(
    file: IndexFile, number: int, postings: Iterable[tuple[bytes, bytes]]
) -> list[bytes]:
    """Write the leaves; returns the first term of each."""
    firsts: list[bytes] = []
    names: list[bytes] = []
    stored_sets: list[bytes] = []
    offsets, width = [0], 0

    def flush() -> None:
        file.put(number, "terms", len(firsts), encode_leaf(names, offsets))
        file.put(number, "docs", len(firsts), b"".join(stored_sets))
        firsts.append(names[0])

    for term, stored in postings:
        names.append(term)
        stored_sets.append(stored)
        offsets.append(offsets[-1] + len(stored))
        width += len(term) + 1
        if width >= _TERMS_BYTES or offsets[-1] >= _DOCS_BYTES:
            flush()
            names, stored_sets, offsets, width = [], [], [0], 0
    if names:
        flush()
    return firsts
