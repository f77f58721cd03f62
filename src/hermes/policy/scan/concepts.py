"""Reads a text as a row of concepts (lexicon.txt) and matches concept rules (concepts.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from importlib.resources import files
from itertools import islice

from hermes.codec.json import convert
from hermes.codec.values import Value, replace
from hermes.policy.scan.normal import own_letters
from hermes.policy.scan.rules import RANK, RuleMatch, Scope

OTHER = "."
# Hyphens and dots inside a phrase.
_BETWEEN = re.compile(r"(?<=\w)[-.](?=\w)")
_HEADING = re.compile(r"= (?P<idea>\w{1,2}|\.)(?: (?P<joined>\[\])?.*)?")


class Phrase(Value):
    """Consecutive words; a word that ends in `*` matches any ending."""

    idea: str
    rest: tuple[str, ...]


class LexiconEntry(Value):
    """The concept of a word, and the phrases that begin with it by second word, longest first.
    `loose` are phrases whose second word may have any ending."""

    idea: str = OTHER
    phrases: dict[str, tuple[Phrase, ...]] = {}
    loose: tuple[Phrase, ...] = ()

    @property
    def opens(self) -> bool:
        return bool(self.phrases or self.loose)

    def with_phrase(self, phrase: Phrase) -> LexiconEntry:
        second = phrase.rest[0]
        if second.endswith("*"):
            return replace(self, loose=_longest_first((*self.loose, phrase)))
        known = self.phrases.get(second, ())
        return replace(self, phrases={**self.phrases, second: _longest_first((*known, phrase))})


def _longest_first(phrases: tuple[Phrase, ...]) -> tuple[Phrase, ...]:
    return tuple(sorted(phrases, key=lambda each: -len(each.rest)))


class Lexicon:
    """`joined` are words of scripts without spaces."""

    def __init__(self, text: str) -> None:
        self.words: dict[str, LexiconEntry] = {}
        self.stems: dict[str, LexiconEntry] = {}
        self.joined: dict[str, str] = {}
        for idea, word, joined in _parse(text):
            if joined:
                self.joined.setdefault(word, idea)
            else:
                self._add(idea, word)
        self._letters = {_letters(word): word for word in _MISSPELT}
        self._lengths = sorted({len(stem) for stem in self.stems}, reverse=True)
        self._heads = {stem[:3] for stem in self.stems}

    def _add(self, idea: str, words: str) -> None:
        first, *rest = words.split()
        table = self.stems if first.endswith("*") else self.words
        first = first.rstrip("*")
        entry = table.get(first, _NOTHING)
        if rest:
            table[first] = entry.with_phrase(Phrase(idea=idea, rest=tuple(rest)))
        elif entry.idea == OTHER:
            table[first] = replace(entry, idea=idea)

    def entry(self, word: str) -> LexiconEntry:
        """The entry of a word in any of its forms."""
        found = self.words.get(word, _NOTHING)
        if found.idea != OTHER:
            return found
        if word[:3] in self._heads:
            for length in self._lengths:
                if stem := self.stems.get(word[:length]):
                    return LexiconEntry(
                        idea=stem.idea,
                        phrases={**stem.phrases, **found.phrases},
                        loose=(*found.loose, *stem.loose),
                    )
        if found.opens:
            return found
        if len(word) > 5 and (meant := self._letters.get(_letters(word))):
            return self.words[meant]
        before, apostrophe, after = word.partition("'")
        if apostrophe and before:
            return self.entry(before if after in ("s", "") else after)
        return _NOTHING


_NOTHING = LexiconEntry()
# Words that are recognised with transposed inner letters.
_MISSPELT = (
    *("ignore", "disregard", "override", "previous", "instruction", "instructions", "guidelines"),
    *("reveal", "system", "prompt", "password", "passwords", "secret", "secrets", "credentials"),
    *("execute", "delete", "bypass", "forget", "restrictions", "developer", "administrator"),
)


def _letters(word: str) -> tuple[str, str, str]:
    return word[0], word[-1], "".join(sorted(word))


def _parse(text: str) -> list[tuple[str, str, bool]]:
    found: list[tuple[str, str, bool]] = []
    idea, joined = "", False
    for line in text.splitlines():
        if heading := _HEADING.fullmatch(line):
            idea, joined = heading["idea"], bool(heading["joined"])
        elif line and not line.startswith("#"):
            for word in line.split(","):
                plain = own_letters(word.strip())
                spaced = plain if joined else _BETWEEN.sub(" ", plain)
                if spaced:
                    found.append((idea, spaced, joined))
    return found


@cache
def lexicon() -> Lexicon:
    path = files("hermes.policy.scan").joinpath("lexicon.txt")
    return Lexicon(path.read_text(encoding="utf-8"))


END, FILLER, DENIAL = "|", "_", "n"
_MOST = 40
_MOST_KNOWN = 20_000
# Block size in characters: positions inside a block are found fast.
_BLOCK = 4000
_COMMON = (
    r"\.(?:ssh(?!/\S*\.pub)|aws|netrc|npmrc|pypirc|gnupg|kube|cursor|git-credentials"
    r"|env(?!\.(?:ex|te|sa|di)))\b|/etc/(?:shadow|passwd)\b|://|@(?=\w+[\w.-]*\.)"
    r"|(?<!\w)--[a-z][\w-]*|[.!?;](?=\s|$|[\"')\]])|\n[ \t]*(?:\n|[-*#>|]|\d+\.)|[:,\n]"
)
_LATIN = r"[a-z][a-z0-9]*(?:['’][a-z]+)?|\d+(?:\.\d+)*[a-z]*"
_PLAIN = re.compile(f"{_LATIN}|{_COMMON}")
# Scripts with spaces between words, and those that need another tokenizer.
_LETTERS = re.compile(rf"{_LATIN}|[^\W\d_]+(?:['’]\w+)?|{_COMMON}|[؟]")
_UNUSUAL = re.compile("[\u0900-\u0e7f\u3001-\u9fff\uac00-\ud7af]")
_SIGNS = {":": ":", ",": ",", "\n": "/", "://": "d", "@": "d"}
_ENDS = frozenset(".!?;\n。！？।؟")
_JOINED = (("\u0e00", "\u0e7f"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\uac00", "\ud7af"))
_RANGES = "".join(f"{low}-{high}" for low, high in _JOINED)
# An addressee at the start of a sentence, punctuation, and an instruction.
_CALLED = re.compile(
    r"([|/:][_.]{0,3})(G_*[,:](?=[^|/]{0,3}?[mesvxoRihwlnyOQ])"
    r"|a_*(?:,|[^|:]{0,4}:)(?=[^|/]{0,9}?[mesvxoRihwlnyOQ])"
    r"|t_*[_.]{0,2}:(?=[^|/]{0,3}?[mesvxoRihwlnyOQ]))"
)
_ASKED = re.compile(r"(n[^|,:]{0,8})N")
_GAPS = {
    ".": r"[^|]?",
    "..": r"[^|]{0,4}?",
    "...": r"[^|]{0,9}?",
    "~": r"[^|n]{0,9}?",
    "^": r"[|/:][m,_.]{0,2}?",
    ">>": r".{0,16}?",
}


class ConceptRule(Value, forbid_unknown_fields=True):
    """A group of concept patterns; concepts.toml explains the fields."""

    id: str
    scope: Scope
    weight: str
    shapes: tuple[str, ...]
    denied: bool = False
    fits: str = ""


class _File(Value, forbid_unknown_fields=True):
    sense: tuple[ConceptRule, ...]


class _Shape(Value):
    """`needs` are concepts without which no row can match."""

    sense: ConceptRule
    expression: re.Pattern[str]
    needs: frozenset[str]


@cache
def concept_rules() -> tuple[ConceptRule, ...]:
    text = files("hermes.policy.scan").joinpath("concepts.toml").read_text(encoding="utf-8")
    return convert(_File, tomllib.loads(text)).sense


@cache
def _shapes(scope: Scope, kind: str) -> tuple[_Shape, ...]:
    return tuple(
        _shape(sense, shape)
        for sense in concept_rules()
        if RANK[sense.scope] <= RANK[scope] and sense.fits in ("", kind)
        for shape in sense.shapes
    )


def _shape(sense: ConceptRule, shape: str) -> _Shape:
    parts = shape.split()
    return _Shape(
        sense=sense,
        expression=re.compile("".join(_GAPS.get(part) or f"[{part}]_*" for part in parts)),
        needs=frozenset(part for part in parts if len(part) == 1 and part not in _GAPS),
    )


@cache
def _words() -> re.Pattern[str]:
    """A tokenizer for all scripts. In scripts without spaces, known words are cut out, and the rest
    is split into runs of up to six letters."""
    known = sorted(lexicon().joined, key=len, reverse=True)
    first = "".join(sorted({word[0] for word in known}))
    others = "".join(_without(first))
    return re.compile(
        rf"{_LATIN}|[{others}]{{1,6}}|(?:{'|'.join(map(re.escape, known))})|[{re.escape(first)}]"
        rf"|[\u0900-\u0963\u0966-\u0dff]+|(?:[^\W\d_{_RANGES}])+(?:['’]\w+)?|{_COMMON}|[。！？।؟]"
    )


def _without(letters: str) -> Iterator[str]:
    """The letters of scripts without spaces except these, as ranges of an expression."""
    for low, high in _JOINED:
        at = ord(low)
        for each in (*(ord(letter) for letter in letters if low <= letter <= high), ord(high) + 1):
            if at < each:
                yield f"{chr(at)}-{chr(each - 1)}"
            at = each + 1


def _expression_for(plain: str) -> re.Pattern[str]:
    if plain.isascii():
        return _PLAIN
    return _words() if _UNUSUAL.search(plain) else _LETTERS


class ConceptRow:
    """The concepts of a text as one character per word, with `|` at the end of each sentence.
    `words` are the tokens: concept n + 1 belongs to word n."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._expression = _expression_for(plain)
        self.words: list[str] = self._expression.findall(plain)
        self.ideas = _mark_addressees(END + "".join(_ideas(self.words)))

    def place(self, first: int, last: int) -> tuple[int, int]:
        """The position of the concepts from `first` to `last` in the text."""
        spans = self._spans[max(first - 1, 0) : last]
        return (spans[0][0], spans[-1][1]) if spans else (0, 0)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return [match.span() for match in self._expression.finditer(self._plain)]


class _Known(dict[str, str]):
    """A cache of concepts by word; `opening` are words that begin phrases."""

    def __init__(self) -> None:
        super().__init__()
        self.opening: dict[str, LexiconEntry] = {}

    def __missing__(self, word: str) -> str:
        entry = _entry(word)
        if entry.opens:
            self.opening[word] = entry
        self[word] = entry.idea
        return entry.idea


@cache
def _cached_concepts() -> _Known:
    return _Known()


def _ideas(words: list[str]) -> list[str]:
    known = _cached_concepts()
    if len(known) > _MOST_KNOWN:
        known.clear()
        known.opening.clear()
    ideas = [known[word] for word in words]
    opening = known.opening
    done = 0
    # Many words can begin a phrase, but few do.
    for at, (word, second) in enumerate(zip(words, [*words[1:], ""], strict=False)):
        if word not in opening or at < done:
            continue
        entry = opening[word]
        if phrases := entry.phrases.get(second) or entry.loose:
            done = _apply_phrase(phrases, words, ideas, at)
    return ideas


def _apply_phrase(phrases: tuple[Phrase, ...], words: list[str], ideas: list[str], at: int) -> int:
    """Replaces the concepts of a phrase; returns the index after it."""
    for phrase in phrases:
        end = at + 1 + len(phrase.rest)
        if end <= len(words) and all(map(_same, phrase.rest, words[at + 1 : end])):
            ideas[at:end] = phrase.idea.ljust(end - at, FILLER)
            return end
    return at + 1


def _same(wanted: str, word: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _entry(word: str) -> LexiconEntry:
    if word in _SIGNS:
        return LexiconEntry(idea=_SIGNS[word])
    if word[0] == "-":
        return lexicon().words.get(word, LexiconEntry())
    if word[0] == "/":
        return LexiconEntry(idea="k")
    if word[0] in _ENDS:
        return LexiconEntry(idea="k" if word[0] == "." and len(word) > 1 else END)
    if word.count(".") == 3:
        return LexiconEntry(idea="d")
    joined = lexicon().joined.get(word)
    return LexiconEntry(idea=joined) if joined else lexicon().entry(word.replace("’", "'"))


def _mark_addressees(ideas: str) -> str:
    """Marks addressees at the start of a sentence; drops "without asking" after a negation."""
    asked = _ASKED.sub(r"\1.", ideas) if "N" in ideas else ideas
    return _CALLED.sub(
        lambda found: found[1] + ("T" if found[2][0] == "t" else "A") + found[2][1:], asked
    )


def speaks_to_machine(plain: str) -> bool:
    """Whether the text addresses a machine."""
    return "A" in ConceptRow(plain).ideas


def read_concepts(
    plain: str, spans: Iterable[tuple[int, int]] | None = None
) -> Iterator[tuple[int, ConceptRow]]:
    """Reads a folded text, or parts of it, into rows with their offsets."""
    for first, last in spans if spans is not None else ((0, len(plain)),):
        for start, block in _blocks(plain[first:last]):
            yield first + start, ConceptRow(block)


def match_concepts(
    row: ConceptRow, start: int, scope: Scope, kind: str = ""
) -> Iterator[RuleMatch]:
    """Matches of the concept rules in a row that begins at `start` of the text."""
    ideas = frozenset(row.ideas)
    for shape in _shapes(scope, kind):
        if shape.needs <= ideas:
            yield from _fits(shape, row, start)


def _blocks(plain: str) -> Iterator[tuple[int, str]]:
    """Splits a text at paragraphs or lines, with offsets."""
    start = 0
    while start < len(plain):
        end = len(plain)
        if end - start > _BLOCK:
            for sign in ("\n\n", "\n", ". ", " "):
                found = plain.rfind(sign, start + _BLOCK // 2, start + _BLOCK)
                if found > 0:
                    end = found + len(sign)
                    break
            else:
                end = start + _BLOCK
        yield start, plain[start:end]
        start = end


def _fits(shape: _Shape, row: ConceptRow, start: int) -> Iterator[RuleMatch]:
    for match in islice(shape.expression.finditer(row.ideas), _MOST):
        if shape.sense.denied or not _is_denied(row.ideas, match.start()):
            first, last = row.place(match.start(), match.end() - 1)
            yield RuleMatch(
                id=shape.sense.id,
                start=start + first,
                end=start + last,
                strong=shape.sense.weight == "strong",
            )


def _is_denied(ideas: str, at: int) -> bool:
    before = ideas[max(0, at - 3) : at].rpartition(END)[2].replace(FILLER, "")[-2:]
    return DENIAL in before or ideas[at + 1 : at + 2] == DENIAL
