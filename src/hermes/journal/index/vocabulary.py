"""All words of the closed segments, each once, so that words can be found by a part of them.

The words are stored in sorted lists; a list holds the words that earlier lists do not. The segments
know which messages have a word.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from hermes.journal.index.file import IndexFile, IndexManifest, SegmentInfo, WordList
from hermes.journal.index.segment import Segment, is_wordlike

_BLOCK_BYTES = 65_536
_ENOUGH = 2_048


def extend_lists(file: IndexFile, manifest: IndexManifest, closed: SegmentInfo) -> IndexManifest:
    """With a list of the words that are new in a segment."""
    words = set(chain.from_iterable(Segment(file, closed).terms_by_leaf()))
    for block in blocks(file, manifest.words):
        words.difference_update(block.split(b"\n"))
    return _with_list(file, manifest, sorted(words))


def rebuild_lists(file: IndexFile, manifest: IndexManifest) -> IndexManifest:
    """With one list of the current words of the segments, replacing all earlier ones."""
    file.drop([known.number for known in manifest.words])
    closed = [Segment(file, info) for info in manifest.segments if info.closed]
    bare = msgspec.structs.replace(manifest, words=())
    return _with_list(file, bare, _merge_terms(closed)) if closed else bare


def words_with(
    blocks: Iterable[bytes], parts: Collection[bytes], *, most: int
) -> dict[bytes, list[bytes]]:
    """For each part the words that contain it; the shortest when there are too many."""
    found: dict[bytes, list[bytes]] = {part: [] for part in parts}
    for block in blocks:
        for part, words in found.items():
            at = block.find(part)
            while at >= 0 and len(words) < _ENOUGH:
                end = block.find(b"\n", at)
                words.append(block[block.rfind(b"\n", 0, at) + 1 : end])
                at = block.find(part, end)
    return {part: sorted(words, key=len)[:most] for part, words in found.items()}


def _with_list(file: IndexFile, manifest: IndexManifest, terms: Iterable[bytes]) -> IndexManifest:
    number, parts, size = manifest.next_number, 0, 0
    words: list[bytes] = []
    for word in filter(is_wordlike, terms):
        words.append(word)
        size += len(word) + 1
        if size >= _BLOCK_BYTES:
            file.put(number, "terms", parts, _join_words(words))
            words, size, parts = [], 0, parts + 1
    file.put(number, "terms", parts, _join_words(words))
    return msgspec.structs.replace(
        manifest,
        next_number=number + 1,
        words=(*manifest.words, WordList(number=number, blocks=parts + 1)),
    )


def _join_words(words: list[bytes]) -> bytes:
    return b"\n" + b"\n".join(words) + b"\n"


def _merge_terms(segments: Sequence[Segment]) -> Iterator[bytes]:
    """The terms of several segments, sorted and each once; see `build`."""
    streams = [segment.terms_by_leaf() for segment in segments]
    waiting: list[list[bytes]] = [[] for _ in segments]
    while any(waiting := [some or next(s, []) for some, s in zip(waiting, streams, strict=True)]):
        end = min(some[-1] for some in waiting if some)
        cuts = [bisect_right(some, end) for some in waiting]
        pairs = list(zip(waiting, cuts, strict=True))
        yield from sorted({term for some, cut in pairs for term in some[:cut]})
        waiting = [some[cut:] for some, cut in pairs]


def blocks(file: IndexFile, lists: Sequence[WordList]) -> Iterator[bytes]:
    """The words of the lists, between newlines."""
    for known in lists:
        yield from file.blocks(known.number, "terms", 0, known.blocks)
