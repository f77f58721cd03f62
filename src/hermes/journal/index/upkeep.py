"""Keeps the index file in step with the journal, and checks it. One process at a time writes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import Literal

from hermes.codec.file_lock import FileLock
from hermes.codec.values import Value, replace
from hermes.journal.index import docs as sets
from hermes.journal.index.build import (
    MOST_DOCS,
    SegmentBuilder,
    merge,
    place_of,
    role_term,
    session_term,
    without,
)
from hermes.journal.index.file import (
    IndexDamaged,
    IndexFile,
    IndexManifest,
    IndexUnavailable,
    JournalPosition,
    SegmentInfo,
)
from hermes.journal.index.segment import Segment, extend_lists, rebuild_lists
from hermes.journal.index.source import ROLES, JournalFile


def problems(file: IndexFile) -> list[str]:
    """Return each problem as text; empty for a valid file."""
    try:
        with file.reading():
            found = file.problems()
            for info in file.manifest().segments:
                found += _problems_of(Segment(file, info))
    except (IndexDamaged, IndexUnavailable) as error:
        return [f"the search index cannot be read: {error}"]
    return found


def _problems_of(segment: Segment) -> list[str]:
    name = f"segment {segment.info.number} of the search index"
    try:
        ids = segment.ids()
        terms = [term for term, _ in segment.postings()]
    except IndexDamaged as error:
        return [f"{name}: {error}"]
    found = []
    if len(ids) != segment.info.docs:
        found.append(f"{name} has {len(ids)} messages instead of {segment.info.docs}")
    if any(left >= right for left, right in pairwise(ids)):
        found.append(f"{name} has messages out of order")
    if any(left >= right for left, right in pairwise(terms)):
        found.append(f"{name} has terms out of order")
    return found


_ROWS_AT_ONCE = 256
_DRAFT_CHARACTERS = 16_000_000
_SEGMENTS_TO_MERGE = 8
_QUICK_MERGE_DOCS = 1_024
_MOST_SMALL_SEGMENTS = 32

Progress = Literal["done", "more", "busy"]


class Sizes(Value):
    """The sizes of segments, in messages."""

    draft: int = 16_384  # messages that are indexed at once
    segment: int = MOST_DOCS  # messages of a full segment, at most 65,536


@contextmanager
def sole_writer(index_path: Path) -> Iterator[bool]:
    """Whether this process may write the index now; never waits."""
    path = index_path.with_name(index_path.name + ".lock")
    lock = FileLock(path)
    try:
        is_held = lock.acquire(timeout=0)
    except OSError as error:
        raise IndexUnavailable(f"{path} cannot be opened: {error.strerror}") from error
    try:
        yield is_held
    finally:
        lock.close()


def advance(file: IndexFile, source: JournalFile, sizes: Sizes, *, thorough: bool) -> Progress:
    """Index one batch of new events. Merges that would delay a search are left to a thorough call,
    unless very many small segments wait."""
    manifest = file.manifest()
    if _is_in_journal(source, manifest.seen) and not (
        source.rows(manifest.seen.id if manifest.seen else 0, 1)
        or merge_due(manifest.segments, sizes, thorough=thorough)
    ):
        if thorough:
            file.shrink()
        return "done"
    with sole_writer(file.path) as mine:
        if not mine:
            return "busy"
        with file.writing():
            manifest = _rewind(file, source, file.manifest())
            manifest, full = _with_new_rows(file, source, manifest, sizes)
            due = merge_due(manifest.segments, sizes, thorough=thorough or full)
            file.put_manifest(_merge_segments(file, manifest, due, sizes) if due else manifest)
    return "more" if full or due or thorough else "done"


def forget(file: IndexFile, source: JournalFile, sessions: Collection[str]) -> Progress:
    """Rewrite every segment that holds messages of these sessions."""
    with sole_writer(file.path) as mine:
        if not mine:
            return "busy"
        with file.writing():
            manifest = file.manifest()
            for info in manifest.segments:
                manifest = _purge(file, source, manifest, info, sessions)
            manifest = rebuild_lists(file, manifest)
            seen = manifest.segments[-1].last if manifest.segments else None
            file.put_manifest(replace(manifest, seen=seen))
        file.shrink()
    return "done"


def merge_due(
    segments: Sequence[SegmentInfo], sizes: Sizes, *, thorough: bool
) -> Sequence[SegmentInfo]:
    """Return the neighbours to merge: those that fill a segment, or the newest that together
    outweigh the next older one, so that a message is rewritten only when its segment doubles."""
    newest = takewhile(lambda info: not info.closed, reversed(segments))
    small = list(newest)[::-1]
    if sum(info.docs for info in small) >= sizes.segment and thorough:
        fitting = [total <= sizes.segment for total in accumulate(info.docs for info in small)]
        return small[: fitting.count(True)]
    if len(small) < _SEGMENTS_TO_MERGE:
        return ()
    crowded = len(small) > _MOST_SMALL_SEGMENTS
    most = sizes.segment if thorough or crowded else _QUICK_MERGE_DOCS
    total = count = 0
    for info in reversed(small):
        if total + info.docs > most or (count and info.docs > total and not crowded):
            break
        total += info.docs
        count += 1
    return small[-count:] if count > 1 else ()


def _merge_segments(
    file: IndexFile, manifest: IndexManifest, due: Sequence[SegmentInfo], sizes: Sizes
) -> IndexManifest:
    new = merge(file, manifest.next_number, [Segment(file, info) for info in due])
    new = replace(new, closed=new.docs > sizes.segment // 2)
    manifest = _exchange(file, manifest, due, (new,))
    return extend_lists(file, manifest, new) if new.closed else manifest


def _exchange(
    file: IndexFile,
    manifest: IndexManifest,
    old: Sequence[SegmentInfo],
    new: tuple[SegmentInfo, ...],
) -> IndexManifest:
    """Drop neighbouring segments in favour of a new one, if any."""
    file.drop([info.number for info in old])
    start = manifest.segments.index(old[0])
    before, after = manifest.segments[:start], manifest.segments[start + len(old) :]
    number = manifest.next_number + len(new)
    return replace(manifest, next_number=number, segments=(*before, *new, *after))


def _with_new_rows(
    file: IndexFile, source: JournalFile, manifest: IndexManifest, sizes: Sizes
) -> tuple[IndexManifest, bool]:
    """Return the manifest with a segment of the next rows, and whether more rows may wait."""
    draft = SegmentBuilder()
    seen = manifest.seen
    full = True
    while len(draft.ids) < sizes.draft and draft.characters < _DRAFT_CHARACTERS:
        rows = source.rows(seen.id if seen else 0, _ROWS_AT_ONCE)
        for row in rows:
            draft.add(row)
        if rows:
            seen = place_of(rows[-1])
        full = len(rows) == _ROWS_AT_ONCE
        if not full:
            break
    number = manifest.next_number
    added = (draft.write(file, number),) if draft.ids else ()
    segments = (*manifest.segments, *added)
    after = replace(manifest, next_number=number + len(added), seen=seen, segments=segments)
    return after, full


def _is_in_journal(source: JournalFile, position: JournalPosition | None) -> bool:
    """Whether the journal still has this event; another journal or an older copy does not."""
    if position is None:
        return True
    return any(place_of(row) == position for row in source.fetch([position.id]))


def _rewind(file: IndexFile, source: JournalFile, manifest: IndexManifest) -> IndexManifest:
    """Return the manifest without the newest segments that do not match the journal."""
    if _is_in_journal(source, manifest.seen):
        return manifest
    rest = list(manifest.segments)
    while rest and not _is_in_journal(source, rest[-1].last):
        file.drop([rest.pop().number])
    seen = rest[-1].last if rest else None
    return rebuild_lists(file, replace(manifest, seen=seen, segments=tuple(rest)))


def _purge(
    file: IndexFile,
    source: JournalFile,
    manifest: IndexManifest,
    info: SegmentInfo,
    sessions: Collection[str],
) -> IndexManifest:
    segment = Segment(file, info)
    terms = {session_term(name).encode() for name in sessions}
    removed = set(sets.members(segment.docs_of(session_term("").encode(), terms)))
    if not removed:
        return manifest
    roles = sets.union([segment.docs(role_term(role).encode()) for role in ROLES.values()])
    alive = sets.difference(roles, removed)
    rest = next(sets.newest(alive), None)
    new: tuple[SegmentInfo, ...] = ()
    if rest is not None:
        # A missing event matches nothing, so that everything after the segment before it is read
        # again.
        id = segment.id_of(rest)
        rows = source.fetch([id])
        last = place_of(rows[0]) if rows else JournalPosition(id=id, session_id="", n=0)
        rewritten = without(file, manifest.next_number, segment, removed, last)
        new = (replace(rewritten, closed=info.closed),)
    return _exchange(file, manifest, [info], new)
