"""Claims of an answer about its own effects, such as "I have sent it", in several languages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = "receipt_phrases"
LANGUAGES = ("en", "de", "es", "fr", "pt")
# A file name, as one character that no text contains.
_FILE = "\ue000"
_WORDS = {
    "file": _FILE,
    # The beginning of a sentence or cell, or of the part after a colon or dash. Words that only
    # lead to a statement ("Done, …") are skipped.
    "head": r"(?:^\W*?|(?<=[:;–—|→(]\s)|(?<=[:;–—|]))(?:{opener}[\s,:!.–—✅👍-]+){0,3}",
}
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|^[ ]*>.*$|“[^”]*”|„[^“”]*[“”]|«[^»]*»|(?<!\w)\"[^\"\n]*\"",
    re.DOTALL | re.MULTILINE,
)
_CODE = re.compile(r"`([^`\n]*)`")
_FILE_NAME = re.compile(
    r"(?<![\w@])(?:[\w.~-]*/)*[\w~-][\w.~-]*\.(?:[a-z]{2}[a-z\d]{0,3}|[chrm]|7z|mp[34])\b(?![@/])"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+"
)
_WEB = re.compile(r"\b(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.[\w.]+")
_DOMAIN = re.compile(r"\.(?:com|org|net|io|de|fr|es|br|eu|ch|at|uk)$")
_EMPHASIS = re.compile(r"\*{1,3}|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)")
# A dot after an abbreviation, a number or within a word ends no sentence.
_END = re.compile(
    r"(?<!\bMr)(?<!\bDr)(?<!\bMs)(?<!\bSr)(?<!\bMrs)(?<!\bSra)(?<!\bProf)(?<!\bSt)(?<!\d)"
    r"(?<!\b[a-zA-Z])\.(?=\s|$)|(?<=\d)\.(?=\s+[A-ZÀ-Ý]|\s*$)|[!?…](?=\s|$)|\n"
)
_CLAUSE = re.compile(r"[,;:–—|]\s|\s(?:but|so|aber|pero|mais|mas|sino|sondern)\s")
# Long answers are only read at both ends, where claims are, so that the check stays fast.
_FIRST, _LAST = 4000, 2000
# A negation this many characters after the claim belongs to it.
_AFTER = 12


class Language(NamedTuple):
    """How one language words claims."""

    common: re.Pattern[str]
    done: re.Pattern[str]
    draft: re.Pattern[str]
    exclude_sentence: re.Pattern[str]
    exclude_before: re.Pattern[str]
    exclude_clause: re.Pattern[str]
    claims: dict[str, tuple[re.Pattern[str], ...]]
    results: dict[str, tuple[re.Pattern[str], ...]]
    corrections: dict[str, str]


@cache
def load_language(code: str) -> Language:
    found = tomllib.loads(
        Path(__file__).with_name(FOLDER).joinpath(f"{code}.toml").read_text("utf-8")
    )
    words = {**_WORDS, **found["words"]}

    def compile_(pattern: str) -> re.Pattern[str]:
        return re.compile(_expand(pattern, words), re.IGNORECASE)

    def compile_table(table: dict[str, list[str]]) -> dict[str, tuple[re.Pattern[str], ...]]:
        return {kind: tuple(compile_(each) for each in table[kind]) for kind in table}

    return Language(
        common=compile_(found["common"]),
        done=compile_(found["done"]),
        draft=re.compile(_expand(found["draft"], words), re.IGNORECASE | re.MULTILINE),
        exclude_sentence=compile_(found["exclude"]["sentence"]),
        exclude_before=compile_(found["exclude"]["before"]),
        exclude_clause=compile_(found["exclude"]["clause"]),
        claims=compile_table(found["claims"]),
        results=compile_table(found["results"]),
        corrections=found["corrections"],
    )


class Claim(NamedTuple):
    """One kind of claim, and what to say if nothing supports it."""

    kind: str
    correction: str


def find_claims(text: str) -> tuple[Claim, ...]:
    """The kinds of effects that an answer claims, each once."""
    plain = _mask(text)
    if len(plain) > _FIRST + _LAST:
        plain = f"{plain[:_FIRST]}\n{plain[-_LAST:]}"
    found: dict[str, Claim] = {}
    for language in _languages_of(plain):
        for kind in _kinds(language, plain):
            found.setdefault(kind, Claim(kind, language.corrections[kind]))
    return tuple(found.values())


def _languages_of(text: str) -> list[Language]:
    """The language of a text; several if it is too short to tell."""
    languages = [load_language(code) for code in LANGUAGES]
    counts = [len(each.common.findall(text)) for each in languages]
    best = max(counts)
    chosen = [each for each, n in zip(languages, counts, strict=True) if n == best]
    # Short English answers may contain no common word.
    return chosen if counts[0] != best - 1 else [languages[0], *chosen]


def _kinds(language: Language, text: str) -> Iterator[str]:
    if draft := language.draft.search(text):
        text = text[: draft.start()]
    is_done = bool(language.done.search(text))
    for sentence in _sentences(text):
        if language.exclude_sentence.search(sentence):
            continue
        for kind, patterns in language.claims.items():
            more = language.results.get(kind, ()) if is_done else ()
            if any(_is_claimed(language, each, sentence) for each in (*patterns, *more)):
                yield kind


def _is_claimed(language: Language, pattern: re.Pattern[str], sentence: str) -> bool:
    for match in pattern.finditer(sentence):
        if language.exclude_before.search(sentence, 0, match.start()):
            continue
        ends = [end.end() for end in _CLAUSE.finditer(sentence, 0, match.start() + 1)]
        start = ends[-1] if ends else 0
        following = _CLAUSE.search(sentence, max(start, match.end() - 1))
        end = min(match.end() + _AFTER, following.start() if following else len(sentence))
        if not language.exclude_clause.search(sentence[start:end]):
            return True
    return False


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        yield text[start : end.end()].strip()
        start = end.end()
    yield text[start:].strip()


def _mask(text: str) -> str:
    """The text without what it quotes; file names are one character."""
    text = _QUOTED.sub("“”", text.replace("'", "’"))
    text = _CODE.sub(lambda code: code[1] if _FILE_NAME.fullmatch(code[1]) else "“”", text)
    text = _WEB.sub("", _EMPHASIS.sub("", text))
    return _FILE_NAME.sub(lambda name: name[0] if _DOMAIN.search(name[0]) else _FILE, text)


def _expand(pattern: str, words: dict[str, str]) -> str:
    """Insert the words that a pattern names."""
    pattern = pattern.replace("\n", "")
    while (wider := re.sub(r"\{([a-z]+)\}", lambda name: words[name[1]], pattern)) != pattern:
        pattern = wider.replace("\n", "")
    return pattern
