"""Terms: splitting text into words, inflected forms, typing errors, and near words."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import add
from pathlib import Path
from typing import NamedTuple

LONGEST = 32
"""The longest term; a longer run of letters and digits becomes several terms."""

# Scripts that are written without spaces between words.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_EMOJI = "\u2600-\u27bf\U0001f300-\U0001faff"
# Letters and digits, and the vowel signs of Indic scripts, which belong to a word.
_LETTER = f"(?:[^\\W_{_DENSE}]|[\u0900-\u0dff])"
_BLOCK = 1_024
_ASCII = re.compile("[\x00-\x7f]*")
_ASCII_WORD = re.compile(f"[a-z0-9]{{1,{LONGEST}}}")
_ASCII_REST = re.compile("[a-z0-9]*")


# Large character classes take milliseconds to compile, so they are compiled on first use.
@cache
def _piece() -> re.Pattern[str]:
    return re.compile(f"(?P<dense>[{_DENSE}]+)|(?P<emoji>[{_EMOJI}])|{_LETTER}{{1,{LONGEST}}}")


@cache
def _rest() -> re.Pattern[str]:
    return re.compile(f"{_LETTER}*")


@cache
def _dense() -> re.Pattern[str]:
    return re.compile(f"[{_DENSE}]")


@cache
def _marks() -> re.Pattern[str]:
    """Compile the characters that folding drops: accents of Latin, Greek and Cyrillic, points of
    Hebrew and Arabic, and zero-width characters. Marks of other scripts (Japanese voiced sounds)
    make different letters."""
    return re.compile(
        "[\u00ad\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670"
        "\u200b-\u200f\u202a-\u202e\u2060\ufe0f\ufeff]+"
    )


_PLAIN = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d"})
_NOT_PLAIN = re.compile("[øđłıæœð]")


def fold(text: str) -> str:
    """Return the text without case, accents and compatibility forms; the length may change."""
    if text.isascii():
        return text.lower()
    bare = _marks().sub("", unicodedata.normalize("NFKD", text))
    low = bare.casefold()
    # `translate` takes longer than everything else, and few texts need it.
    return unicodedata.normalize("NFC", low.translate(_PLAIN) if _NOT_PLAIN.search(low) else low)


def terms(folded: str) -> set[str]:
    """Return the terms of a folded text. A run without spaces gives its pairs of neighbours and its
    last character alone, so that a single character is always the prefix of a term."""
    if folded.isascii():
        return set(_ASCII_WORD.findall(folded))
    found: set[str] = set()
    for piece in _piece().finditer(folded):
        if piece.lastgroup == "dense":
            found.update(pairs(piece[0]))
            found.add(piece[0][-1])
        else:
            found.add(piece[0])
    return found


def pieces(folded: str) -> list[tuple[str, int]]:
    """Return words and runs in order, each with its start."""
    return [(piece[0], piece.start()) for piece in _piece().finditer(folded)]


def pairs(run: str) -> list[str]:
    return list(map(add, run, run[1:]))


def end_of_word(text: str, at: int) -> int:
    """Return the end of the word that reaches to this position."""
    rest = (_ASCII_REST if text.isascii() else _rest()).match(text, at)
    return rest.end() if rest else at


def is_dense(character: str) -> bool:
    return not character.isascii() and _dense().match(character) is not None


def continues_word(text: str, at: int) -> bool:
    """Whether the character there would continue a word beside it."""
    if not 0 <= at < len(text):
        return False
    character = text[at]
    return character.isalnum() and not is_dense(character)


def origins(text: str, positions: Sequence[int]) -> list[int]:
    """Return, for rising positions in the folded text, the positions in the text itself."""
    if text.isascii():
        return list(positions)
    found: list[int] = []
    start = before = 0
    for end in _blocks(text):
        length = len(fold(text[start:end]))
        last = before + length
        inside = [position - before for position in positions[len(found) :] if position < last]
        if inside:
            exact = _exact_origins(text, start, end)
            found += [exact[position] for position in inside]
        start, before = end, before + length
    return found + [len(text)] * (len(positions) - len(found))


def _blocks(text: str) -> Iterator[int]:
    """Yield the ends of parts that fold independently."""
    end = _BLOCK
    while end < len(text):
        while end < len(text) and _joins(text[end]):
            end += 1
        yield end
        end += _BLOCK
    yield len(text)


def _exact_origins(text: str, start: int, end: int) -> list[int]:
    """Return, for each character of the folded part, its position in the text."""
    found: list[int] = []
    while start < end:
        plain = _plain_end(text, start, end)
        found += range(start, plain)
        if (start := plain) == end:
            break
        after = start + 1
        while after < end and _joins(text[after]):
            after += 1
        found += [start] * len(fold(text[start:after]))
        start = after
    return found


def _plain_end(text: str, start: int, end: int) -> int:
    """Return the end of the part where each character folds into one. The last character before
    another script may combine with it."""
    run = _ASCII.match(text, start, end)
    stop = run.end() if run else start
    return stop if stop == end else max(start, stop - 1)


def _joins(character: str) -> bool:
    """Whether normalization may merge the character with the one before it, or drop it."""
    return (
        unicodedata.category(character)[0] == "M"
        or "\u1160" <= character <= "\u11ff"
        or _marks().match(character) is not None
    )


def _longest_first(endings: str) -> dict[str, None]:
    """Return the endings, followed by the empty ending."""
    return dict.fromkeys([*sorted(endings.split(), key=len, reverse=True), ""])


# Endings are only removed from and added to long stems, so that a wrong guess is rare; it costs
# rank, never a result.
_LATIN = _longest_first(
    "s es e ed d er ers ing ings ly y ies ied ier ion ions or ors al ment ments able ive"
    " n en em ern a o as os i eur ung ungen"
)
_CYRILLIC = _longest_first(
    "ы и а я у ю е о ь ов ев ам ям ом ем ой еи ах ях ами ями ыи ая ое ые ого ому ых"
)
_OTHER = _longest_first("s e es")
_SHORTEST_STEM = 4
_SHORTEST_WORD = 4


def stem(word: str) -> str:
    """Return the word without its longest ending; empty for a word that is too short to have
    forms."""
    if len(word) < _SHORTEST_WORD or not word.isalpha():
        return ""
    for ending in _endings(word):
        root = word[: -len(ending)]
        if not ending:
            break
        if not word.endswith(ending) or len(root) < _SHORTEST_STEM - (len(ending) > 2):
            continue
        if ending == "y" and root[-1] in "aeiou":
            continue
        doubled = len(root) > _SHORTEST_STEM and root[-1] == root[-2]
        return root[:-1] if doubled and ending in ("ed", "ing", "er", "ers") else root
    return word


def is_form(root: str, other: str) -> bool:
    """Whether the other word, which begins with the stem, is a form of that word."""
    ending = other[len(root) :]
    known = _endings(root)
    return ending in known or (ending[0] == root[-1] and ending[1:] in known)


def _endings(word: str) -> dict[str, None]:
    if "\u0400" <= word[0] <= "\u04ff":
        return _CYRILLIC
    return _LATIN if word.isascii() else _OTHER


SHORTEST, SHORTEST_NAME = 5, 4
"""The minimal length of a word or name that may be misspelled; shorter ones have too many
neighbours."""


def alike(word: str, blocks: Iterable[bytes], *, most: int) -> list[str]:
    """Return the words that differ by an extra, missing or wrong letter or by two swapped letters;
    those with the same prefix first. A block is words between newlines."""
    found = {other for block in blocks for other in _one_slip_away(word, block)}
    found.discard(word)
    order = sorted(found, key=lambda other: (other[0] != word[0], len(other) != len(word), other))
    return order[:most]


def is_one_slip(word: str, other: str) -> bool:
    """Whether one typing error turns one word into the other."""
    shorter = min(len(word), len(other))
    if max(len(word), len(other)) - shorter > 1:
        return False
    first = 0
    while first < shorter and word[first] == other[first]:
        first += 1
    last = 0
    while last < shorter - first and word[-1 - last] == other[-1 - last]:
        last += 1
    left, right = word[first : len(word) - last], other[first : len(other) - last]
    return max(len(left), len(right)) < 2 or (len(left) == 2 and left == right[::-1])


def _one_slip_away(word: str, block: bytes) -> Iterator[str]:
    """Yield the words of the block that are one typing error away. An error leaves one half of a
    word intact, unless two letters are swapped in its middle."""
    middle = len(word) // 2
    begins, ends = b"\n" + word[:middle].encode(), word[middle:].encode() + b"\n"
    swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    if b"\n" + swapped.encode() + b"\n" in _with_beginning(block, swapped.encode()[:1]):
        yield swapped
    for part, where in ((begins, _with_beginning(block, begins[1:])), (ends, block)):
        at = where.find(part)
        while at >= 0:
            start = where.rfind(b"\n", 0, at + 1) + 1
            end = where.find(b"\n", start)
            if len(word) - 1 <= end - start <= 4 * (len(word) + 1):
                other = where[start:end].decode("utf-8", "replace")
                if is_one_slip(word, other):
                    yield other
            at = where.find(part, end)


def _with_beginning(block: bytes, start: bytes) -> bytes:
    """Return the block, if words with this prefix can be in it, otherwise nothing. A block is
    sorted."""
    first, last = block[1 : 1 + len(start)], block[block.rfind(b"\n", 0, -1) + 1 : -1]
    return block if first <= start <= last[: len(start)] else b""


_FILE = Path(__file__).with_name("lexicon.txt")
_NEAR = 0.6
_MEMBER = 0.5
_BACKWARDS = 0.35
_ENDINGS = (("ies", "y"), ("ing", "e"), ("ing", ""), ("ed", "e"), ("ed", ""), ("es", ""), ("s", ""))


class Related(NamedTuple):
    """Other words for a word."""

    forms: tuple[str, ...] = ()  # these count like the word itself
    near: tuple[tuple[str, float], ...] = ()  # each counts for its part


def is_stop_word(word: str) -> bool:
    """Whether a folded word carries no meaning."""
    return word in _lexicon()["stop"]


def is_weak_word(word: str) -> bool:
    """Whether a folded word is typical of questions rather than answers."""
    return word in _lexicon()["weak"]


def is_listed(word: str) -> bool:
    """Whether a folded word, or its base form, is in the list."""
    known = _lexicon()
    if word in known["stop"] or word in known["weak"]:
        return True
    return any(_entry(known[part], word) for part in ("forms", "near", "kinds", "backwards"))


def related_words(word: str) -> Related:
    """Return other words for a folded word."""
    known = _lexicon()
    forms = [form for form in _entry(known["forms"], word) if form != word]
    near: dict[str, float] = {}
    for one in (word, *forms):
        for part, weight in (("near", _NEAR), ("kinds", _MEMBER)):
            for other in _entry(known[part], one):
                near.setdefault(other, weight)
    for one in (word, *forms):
        for head in _entry(known["backwards"], one):
            near.setdefault(head, _BACKWARDS)
    for one in (word, *forms):
        near.pop(one, None)
    return Related(tuple(forms), tuple(near.items()))


def _entry(table: dict[str, list[str]], word: str) -> list[str]:
    """Return the entry of the word or of its base form."""
    if word in table:
        return table[word]
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and (base := word.removesuffix(ending) + instead) in table:
            return table[base]
    return []


@cache
def _lexicon() -> dict[str, dict[str, list[str]]]:
    """Return the parts of the file, and for each word of `near` and `kinds` the entries that name
    it."""
    parts: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    name = ""
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if not line or line[0] == "#":
            continue
        if line[0] == "[":
            name = line[1:-1]
            continue
        head, *rest = words = line.replace(":", "").split()
        table = parts[name]
        if name in ("stop", "weak"):
            table.update((word, []) for word in words)
        elif name == "forms":
            for word in words:
                known = table.setdefault(word, [])
                known += [other for other in words if other not in (word, *known)]
        else:
            # Two-word entries stay apart, and of some only one word is significant.
            telling = [word for word in rest if word not in parts["stop"]]
            table.setdefault(head, []).extend(telling)
    for table in (parts["near"], parts["kinds"]):
        for head, words in table.items():
            for word in words:
                parts["backwards"].setdefault(word, []).append(head)
    return dict(parts)
