"""One language of the assistant: tokens, its data file, and the indexes built from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from hermes.codec.json import decode
from hermes.codec.values import Value, replace
from hermes.providers.offline.arithmetic import NumberStyle

TokenKind = Literal["word", "number", "path", "glob", "url", "quoted", "mark"]


class TextToken(Value):
    """`text` is as written, without quotes; `word` is for comparison and empty for quoted text.
    `near` holds words that `word` may be a typo of."""

    text: str
    word: str
    kind: TokenKind
    start: int
    end: int
    near: tuple[str, ...] = ()


_PIECE = re.compile(
    r"""
    ```(?:[\w-]*\n)?(?P<block>.+?)```
    | `(?P<tick>[^`]+)`
    | "(?P<straight>[^"]+)"
    | [“„](?P<curly>[^“”„]+)[“”]
    | «(?P<angle>[^«»]+)»
    | [‘‚](?P<curved>[^‘’‚\n]+)[‘’](?!\w)
    | (?<!\w)'(?P<single>[^'\n]+)'(?!\w)
    | (?P<line>\n)
    | (?P<plain>[^\s"`“”„«»]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_TAIL = re.compile(r"(?s)(.*?)([.,;:!?…]+)")
_SUM_SIGNS = frozenset("-+*/^%().,0123456789")
_NUMBER = re.compile(r"#?\d+(?:[.,]\d+)*%?")
_FILE_NAME = re.compile(r"\.?[\w@+=-]+(?:\.[\w@+=-]+)*\.[^\W\d_]\w{0,9}|\.[^\W\d_][\w.-]*")
_NOT_PATHS = frozenset({"and/or", "e.g", "i.e", "z.b", "d.h", "u.a"})


def tokenise(text: str, expand: Mapping[str, str]) -> list[TextToken]:
    """`expand` spells contractions out: "what's" becomes two words at the same position."""
    return [token for piece in _PIECE.finditer(text) for token in _tokens_of(piece, expand)]


def word_of(text: str) -> str:
    return text.casefold().replace("’", "'")


def _tokens_of(piece: re.Match[str], expand: Mapping[str, str]) -> Iterator[TextToken]:
    group = piece.lastgroup or "plain"
    text = piece[group]
    if group == "line":
        yield TextToken(text=text, word=text, kind="mark", start=piece.start(), end=piece.end())
        return
    if group != "plain":
        inner = text.strip("\n") if group == "block" else text
        yield TextToken(text=inner, word="", kind="quoted", start=piece.start(), end=piece.end())
        return
    body, marks = _without_tail(text)
    middle = piece.start() + len(body)
    if body:
        yield from _expand(_plain(body, piece.start()), expand)
    if marks:
        yield TextToken(text=marks, word=marks[0], kind="mark", start=middle, end=piece.end())


def _without_tail(text: str) -> tuple[str, str]:
    """A word and the punctuation after it. Dots that are a folder stay."""
    if text in (".", "..") or text.endswith(("/.", "/..")):
        return text, ""
    found = _TAIL.fullmatch(text)
    return (found[1], found[2]) if found else (text, "")


def _plain(text: str, start: int) -> TextToken:
    return TextToken(
        text=text, word=word_of(text), kind=_kind_of(text), start=start, end=start + len(text)
    )


def _kind_of(text: str) -> TokenKind:
    if _NUMBER.fullmatch(text):
        return "number"
    if "://" in text or text.startswith("www."):
        return "url"
    if _is_sum(text) or word_of(text) in _NOT_PATHS:
        return "word"
    if "*" in text or "?" in text:
        return "glob"
    if "/" in text or text[0] == "~" or text in (".", "..") or _FILE_NAME.fullmatch(text):
        return "path"
    return "word"


def _is_sum(text: str) -> bool:
    return _SUM_SIGNS.issuperset(text) and any(letter.isdigit() for letter in text)


def _expand(token: TextToken, expand: Mapping[str, str]) -> Iterator[TextToken]:
    spelled_out = expand.get(token.word)
    if spelled_out is None:
        yield token
        return
    for word in spelled_out.split():
        yield replace(token, text=word, word=word)


_SIGNS = str.maketrans("|?", "  ")

FOLDER = Path(__file__).parent / "languages"
DEFAULT = "en"


class RequestKind(Value):
    """One kind of request. `patterns` define its wording (see patterns.py), `extras` what may come
    before or after in any order. `needs` are slots that are asked for if missing. `exact` kinds
    allow no typo; `greedy` ones keep "and …" as part of their text; `alone` ones are never one of
    several steps; `fresh` ones create something, so their path never refers to something shown
    before. `follows` are wordings that mean this only after a request of the same group that has
    such wordings ("add bread")."""

    name: str
    group: str
    title: str
    examples: tuple[str, ...]
    patterns: tuple[str, ...]
    extras: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    exact: bool = False
    greedy: bool = False
    alone: bool = False
    fresh: bool = False


class LanguageData(Value):
    """A file of `languages/`. Phrases are lower-case words separated by single spaces. `everyday`
    names the word classes without meaning; `composed` are things that would have to be written
    first ("documentation"), so they are not a text themselves; `definite` words precede things, not
    file names. A word of `unlike_commands` is not a program ("run away"), a word of `qualities` not
    a file ("the oldest file")."""

    code: str
    name: str
    expand: dict[str, str]
    openers: tuple[str, ...]
    closers: tuple[str, ...]
    connectors: tuple[str, ...]
    asides: tuple[str, ...]
    fillers: tuple[str, ...]
    indefinite: tuple[str, ...]
    definite: tuple[str, ...]
    composed: tuple[str, ...]
    unlike_commands: tuple[str, ...]
    qualities: tuple[str, ...]
    numbers: dict[str, int]
    ordinals: dict[str, int]
    ordinal_nouns: tuple[str, ...]
    places: dict[str, str]
    it: tuple[str, ...]
    there: tuple[str, ...]
    path_nouns: tuple[str, ...]
    named: tuple[str, ...]
    file_types: dict[str, str]
    numbers_written: NumberStyle
    words: dict[str, tuple[str, ...]]
    everyday: tuple[str, ...]
    groups: dict[str, str]
    kinds: tuple[RequestKind, ...]
    say: dict[str, str]


# A pattern of a kind with its position among all patterns. Bare tuples, because every start builds
# a thousand of them.
IndexedPattern = tuple[int, RequestKind, str]


# Phrases by their first word: the whole phrase and its meaning.
Phrases = dict[str, list[tuple[tuple[str, ...], str]]]


class AssistantLanguage:
    """The data of one language with its indexes."""

    def __init__(self, data: LanguageData) -> None:
        self.data = data
        self.kinds = {kind.name: kind for kind in data.kinds}
        self.fillers = frozenset(data.fillers)
        self.composed = frozenset(data.composed)
        self.unlike_commands = frozenset(data.unlike_commands)
        self.qualities = frozenset(data.qualities)

    @cached_property
    def classes(self) -> Phrases:
        """The meaning is the class name as in patterns: "<show>"."""
        words = self.data.words.items()
        return _by_first_word([(phrase, f"<{name}>") for name, group in words for phrase in group])

    @cached_property
    def openers(self) -> Phrases:
        return _by_first_word([(phrase, "") for phrase in self.data.openers])

    @cached_property
    def closers(self) -> Phrases:
        """By their last word, reversed: they are removed from the end."""
        return _by_first_word([(_backwards(phrase), "") for phrase in self.data.closers])

    @cached_property
    def connectors(self) -> Phrases:
        return _by_first_word([(phrase, "") for phrase in self.data.connectors])

    @cached_property
    def asides(self) -> Phrases:
        """Polite phrases that may be anywhere."""
        return _by_first_word([(phrase, "") for phrase in self.data.asides])

    @cached_property
    def places(self) -> Phrases:
        return _by_first_word(self.data.places.items())

    @cached_property
    def references(self) -> Phrases:
        pairs = [(phrase, "@it") for phrase in self.data.it]
        pairs += [(phrase, "@there") for phrase in self.data.there]
        return _by_first_word(pairs)

    @cached_property
    def patterns(self) -> dict[str, list[IndexedPattern]]:
        """By each form of their first required element; those without one under ""."""
        found: dict[str, list[IndexedPattern]] = {}
        every = [(kind, text) for kind in self.data.kinds for text in kind.patterns]
        for order, (kind, text) in enumerate(every):
            indexed = (order, kind, text)
            for form in _first_required(text).split("|"):
                if form in found:
                    found[form].append(indexed)
                else:
                    found[form] = [indexed]
        return found

    @cached_property
    def vocabulary(self) -> dict[str, list[str]]:
        """Every known word by its first letter, for spelling correction."""
        found: dict[str, list[str]] = {}
        for word in sorted(self.known):
            found.setdefault(word[0], []).append(word)
        return found

    @cached_property
    def known(self) -> frozenset[str]:
        data = self.data
        words = set(data.fillers) | set(data.numbers) | set(data.ordinals) | set(data.file_types)
        phrases = [*data.openers, *data.closers, *data.connectors, *data.asides, *data.places]
        phrases += [*data.it, *data.there, *data.path_nouns, *data.named, *data.ordinal_nouns]
        phrases += [phrase for group in data.words.values() for phrase in group]
        patterns = [
            text for kind in data.kinds for text in (*kind.patterns, *kind.extras, *kind.follows)
        ]
        elements = set(" ".join(patterns).translate(_SIGNS).split())
        words.update(each for each in elements if each[0] not in "<{-" and "=" not in each)
        words.update(" ".join(phrases).split())
        return frozenset(words)

    @cached_property
    def sentence_words(self) -> frozenset[str]:
        """Words of which a sentence after a program name has at least one."""
        classes = [self.data.words.get(name, ()) for name in ("in", "of", "to", "and", "have")]
        phrases = " ".join(phrase for phrases in classes for phrase in phrases)
        return self.fillers | self.unlike_commands | frozenset(phrases.split())

    def may_name_program(self, word: str) -> bool:
        """True for any word without another meaning."""
        return word not in self.known and word not in self.unlike_commands


def phrase_ends(phrases: Phrases, tokens: list[TextToken], at: int) -> list[tuple[int, str, int]]:
    """Where phrases that start at this token end: (end, meaning, slips), longest first."""
    if at >= len(tokens):
        return []
    found: list[tuple[int, str, int]] = []
    first = tokens[at]
    for word in (first.word, *first.near):
        for words, meaning in phrases.get(word, ()):
            slips = _slips(words, tokens, at)
            if slips is not None:
                found.append((at + len(words), meaning, slips))
    found.sort(key=lambda item: -item[0])
    return found


@lru_cache(maxsize=8)
def load_language(code: str) -> AssistantLanguage:
    """The language with that code, or English."""
    file = FOLDER / f"{code}.json"
    known = code.isalpha() and file.is_file()
    return AssistantLanguage(
        decode(LanguageData, (file if known else FOLDER / "en.json").read_bytes())
    )


@lru_cache(maxsize=1)
def available_languages() -> tuple[str, ...]:
    return tuple(sorted(file.stem for file in FOLDER.glob("*.json")))


def _by_first_word(pairs: Iterable[tuple[str, str]]) -> Phrases:
    found: Phrases = {}
    for phrase, meaning in pairs:
        words = tuple(phrase.split())
        found.setdefault(words[0], []).append((words, meaning))
    return found


def _backwards(phrase: str) -> str:
    return " ".join(reversed(phrase.split()))


def _slips(words: tuple[str, ...], tokens: list[TextToken], at: int) -> int | None:
    """The number of misspelt tokens; None if the tokens are not these words."""
    if at + len(words) > len(tokens):
        return None
    slips = 0
    for word, token in zip(words, tokens[at:], strict=False):
        if word != token.word:
            if word not in token.near:
                return None
            slips += 1
    return slips


def may_match(pattern: str, present: set[str]) -> bool:
    """A text must contain all elements that are neither optional nor slots."""
    return all(
        element in present or any(form in present for form in element.split("|"))
        for element in pattern.partition(" -> ")[0].split()
        if element[-1] != "?" and element[0] != "{"
    )


def _first_required(pattern: str) -> str:
    for element in pattern.split():
        if element == "->":
            break
        if element[-1] != "?" and element[0] != "{":
            return element
    return ""
