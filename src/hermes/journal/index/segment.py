"""Reads segments of the index, and the word lists of closed ones."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeVar

from hermes.codec.values import replace
from hermes.journal.index import docs as sets
from hermes.journal.index.docs import NOTHING, Docs
from hermes.journal.index.file import IndexDamaged, IndexFile, IndexManifest, SegmentInfo, WordList
from hermes.journal.index.terms import is_form

T = TypeVar("T")

PLACES_PER_BLOCK = 2048
_FEW_TERMS = 16
_MOST_LEAVES = 16
_PLACES_HEAD = 11
_FIRST_WORD, _FIRST_PAIR = b" ", b"\xe3"


class Leaf(NamedTuple):
    """A block of sorted terms, each with the set of its messages."""

    terms: bytes  # between newlines
    offsets: array[int]  # the set of the n-th term lies between two of these

    def ordinal(self, at: int) -> int:
        """Return the number of the term that follows the newline at that position."""
        return self.terms.count(b"\n", 0, at)

    def span(self, start: bytes) -> tuple[int, int]:
        """Return the newlines before and after the terms with this prefix; zeros when there are
        none."""
        sought = b"\n" + start
        first = self.terms.find(sought)
        if first < 0:
            return 0, 0
        return first, self.terms.find(b"\n", self.terms.rfind(sought) + 1)


class DocLocations(NamedTuple):
    """Where neighbouring messages are in the journal, and when they were written."""

    first_id: int
    distances: array[int]
    seconds: array[int]


class Segment:
    def __init__(self, file: IndexFile, info: SegmentInfo) -> None:
        self.info = info
        self._file = file
        self._leaves: dict[int, Leaf] = {}
        self._sets: dict[int, bytes] = {}
        self._places: dict[int, DocLocations] = {}

    def docs(self, term: bytes) -> Docs:
        number = self._leaf_of(term)
        leaf = self.leaf(number)
        at = leaf.terms.find(b"\n" + term + b"\n")
        return NOTHING if at < 0 else self._docs(number, leaf.ordinal(at))

    def docs_of(self, start: bytes, terms: Collection[bytes]) -> Docs:
        """Return the messages of any of the terms, which all begin with `start`."""
        if len(terms) <= _FEW_TERMS:
            return sets.union([self.docs(term) for term in terms])
        found: list[Docs] = []
        for number in self.leaves_of(start):
            listed = self.leaf(number).terms[1:-1].split(b"\n")
            found += [self._docs(number, i) for i, term in enumerate(listed) if term in terms]
        return sets.union(found)

    def docs_of_forms(self, stem: str) -> Docs:
        """Return the messages of all words with that stem."""
        start = stem.encode()
        found: list[Docs] = []
        for number in self.leaves_of(start):
            leaf = self.leaf(number)
            first, end = leaf.span(start)
            words = leaf.terms[first + 1 : end].decode().split("\n") if end else []
            forms = [index for index, word in enumerate(words) if is_form(stem, word)]
            if forms:
                before = leaf.ordinal(first)
                found += [self._docs(number, before + index) for index in forms]
        return sets.union(found)

    def docs_starting(self, start: bytes) -> Docs:
        """Return the messages of the terms that begin with `start`. A prefix that is so short that
        it fills many leaves finds enough in the first of them."""
        found: list[Docs] = []
        for number in self.leaves_of(start)[:_MOST_LEAVES]:
            leaf = self.leaf(number)
            first, end = leaf.span(start)
            indexes = range(leaf.ordinal(first), leaf.ordinal(end)) if end else ()
            found += [self._docs(number, index) for index in indexes]
        return sets.union(found)

    def docs_containing(self, parts: Collection[bytes], *, most: int) -> dict[bytes, Docs]:
        """Return, for each part, the messages of words that contain it, of at most `most` words.
        Reads all terms, so it is for small segments."""
        found: dict[bytes, list[Docs]] = {part: [] for part in parts}
        for number, block in enumerate(self._term_blocks):
            for part, some in found.items():
                if part in block and len(some) < most:
                    leaf = self._leaves[number] = _decode_leaf(block)
                    inside = (
                        self._docs(number, index)
                        for index, term in enumerate(leaf.terms[1:-1].split(b"\n"))
                        if part in term and is_wordlike(term)
                    )
                    some += islice(inside, most)
        return {part: sets.union(some) for part, some in found.items()}

    def id_of(self, number: int) -> int:
        """Return the journal's id of the message."""
        part, offset = divmod(number, PLACES_PER_BLOCK)
        if part not in self._places:
            self._places[part] = _decode_places(self._file.block(self.info.number, "places", part))
        locations = self._places[part]
        return locations.first_id + locations.distances[offset]

    def _all_places(self) -> Iterator[DocLocations]:
        count = -(-self.info.docs // PLACES_PER_BLOCK)
        return map(_decode_places, self._file.blocks(self.info.number, "places", 0, count))

    def ids(self) -> list[int]:
        return [one.first_id + distance for one in self._all_places() for distance in one.distances]

    def seconds(self) -> list[int]:
        return [second for locations in self._all_places() for second in locations.seconds]

    def postings(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every term with its stored set, sorted."""
        return (posting for leaf in self.postings_by_leaf() for posting in leaf)

    def postings_by_leaf(self) -> Iterator[list[tuple[bytes, bytes]]]:
        all_sets = self._file.blocks(self.info.number, "docs", 0, self.info.leaves)
        for leaf, data in zip(self._all_leaves(), all_sets, strict=True):
            stored = [data[start:end] for start, end in pairwise(leaf.offsets)]
            yield list(zip(leaf.terms[1:-1].split(b"\n"), stored, strict=True))

    def words(self) -> Iterator[bytes]:
        """Return all terms, between newlines; for small segments."""
        return (block[_end_of_offsets(block) :] for block in self._term_blocks)

    def terms_by_leaf(self) -> Iterator[list[bytes]]:
        return (leaf.terms[1:-1].split(b"\n") for leaf in self._all_leaves())

    def leaf(self, number: int) -> Leaf:
        if number not in self._leaves:
            self._leaves[number] = _decode_leaf(self._file.block(self.info.number, "terms", number))
        return self._leaves[number]

    @cached_property
    def _term_blocks(self) -> list[bytes]:
        """Cached, because they are usually read again."""
        return list(self._file.blocks(self.info.number, "terms", 0, self.info.leaves))

    def _all_leaves(self) -> Iterator[Leaf]:
        return map(_decode_leaf, self._file.blocks(self.info.number, "terms", 0, self.info.leaves))

    def _leaf_of(self, term: bytes) -> int:
        return max(0, bisect_right(self._firsts, term) - 1)

    def leaves_of(self, start: bytes) -> range:
        """Return the leaves that can hold terms with that prefix."""
        end = bisect_left(self._firsts, start + b"\xff")
        first = self._leaf_of(start)
        return range(first, max(first + 1, end))

    @cached_property
    def _firsts(self) -> list[bytes]:
        """The first term of each leaf."""
        firsts = self._file.block(self.info.number, "root", 0).split(b"\n")
        if len(firsts) != self.info.leaves:
            raise IndexDamaged("a root does not fit its leaves")
        return firsts

    def _docs(self, leaf: int, ordinal: int) -> Docs:
        if leaf not in self._sets:
            self._sets[leaf] = self._file.block(self.info.number, "docs", leaf)
        offsets = self.leaf(leaf).offsets
        stored = self._sets[leaf][offsets[ordinal] : offsets[ordinal + 1]]
        return sets.decode(stored, self.info.docs)


def is_wordlike(term: bytes) -> bool:
    """Whether the term can be found by a part of it: not sessions and roles, nor pairs of Chinese,
    Japanese and Korean characters, which have no parts."""
    return _FIRST_WORD < term < _FIRST_PAIR


def encode_leaf(terms: list[bytes], offsets: list[int]) -> bytes:
    joined = b"\n" + b"\n".join(terms) + b"\n"
    return len(terms).to_bytes(2, "little") + array("H", offsets).tobytes() + joined


def _decode_leaf(data: bytes) -> Leaf:
    end = _end_of_offsets(data)
    return Leaf(data[end:], array("H", data[2:end]))


def _end_of_offsets(data: bytes) -> int:
    return 2 + 2 * (int.from_bytes(data[:2], "little") + 1)


def encode_places(ids: list[int], seconds: list[int]) -> bytes:
    distances = [id - ids[0] for id in ids]
    width = "H" if distances[-1] < 1 << 16 else "I" if distances[-1] < 1 << 32 else "Q"
    head = width.encode() + ids[0].to_bytes(8, "little") + len(ids).to_bytes(2, "little")
    return head + array(width, distances).tobytes() + array("I", seconds).tobytes()


def _decode_places(data: bytes) -> DocLocations:
    first, count = int.from_bytes(data[1:9], "little"), int.from_bytes(data[9:11], "little")
    end = len(data) - 4 * count
    distances = array(data[:1].decode(), data[_PLACES_HEAD:end])
    return DocLocations(first, distances, array("I", data[end:]))


_BLOCK_BYTES = 65_536
_ENOUGH = 2_048


def extend_lists(file: IndexFile, manifest: IndexManifest, closed: SegmentInfo) -> IndexManifest:
    """Return the manifest with a list of the words that are new in a segment."""
    words = set(chain.from_iterable(Segment(file, closed).terms_by_leaf()))
    for block in blocks(file, manifest.words):
        words.difference_update(block.split(b"\n"))
    return _with_list(file, manifest, sorted(words))


def rebuild_lists(file: IndexFile, manifest: IndexManifest) -> IndexManifest:
    """Return the manifest with one list of the current words, which replaces all earlier ones."""
    file.drop([known.number for known in manifest.words])
    closed = [Segment(file, info) for info in manifest.segments if info.closed]
    bare = replace(manifest, words=())
    batches = merge_sorted([segment.terms_by_leaf() for segment in closed], bytes)
    terms = (term for batch in batches for term in dict.fromkeys(batch))
    return _with_list(file, bare, terms) if closed else bare


def words_with(
    blocks: Iterable[bytes], parts: Collection[bytes], *, most: int
) -> dict[bytes, list[bytes]]:
    """Return, for each part, the words that contain it; the shortest when there are too many."""
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
    lists = (*manifest.words, WordList(number=number, blocks=parts + 1))
    return replace(manifest, next_number=number + 1, words=lists)


def _join_words(words: list[bytes]) -> bytes:
    return b"\n" + b"\n".join(words) + b"\n"


def merge_sorted(
    streams: Sequence[Iterator[list[T]]], key: Callable[[T], bytes]
) -> Iterator[list[T]]:
    """Yield the items of several sorted streams, in sorted batches. Whole leaves are sorted at a
    time, up to the term that every stream has been read to, which is much faster than one by
    one."""
    waiting: list[list[T]] = [[] for _ in streams]
    while any(waiting := [some or next(s, []) for some, s in zip(waiting, streams, strict=True)]):
        end = min(key(some[-1]) for some in waiting if some)
        pairs = [(some, bisect_right(some, end, key=key)) for some in waiting]
        yield sorted([item for some, cut in pairs for item in some[:cut]])  # type: ignore[type-var]
        waiting = [some[cut:] for some, cut in pairs]


def blocks(file: IndexFile, lists: Sequence[WordList]) -> Iterator[bytes]:
    """Yield the words of the lists, between newlines."""
    for known in lists:
        yield from file.blocks(known.number, "terms", 0, known.blocks)
