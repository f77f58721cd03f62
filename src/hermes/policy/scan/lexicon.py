"""What words mean, whatever the language: ideas by one letter each, from `lexicon.txt`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from hermes.codec.values import Value, replace
from hermes.policy.scan.normal import own_letters

OTHER = "."
# As the words of a text are set apart.
_BETWEEN = re.compile(r"(?<=\w)[-.](?=\w)")
_HEADING = re.compile(r"= (?P<idea>\w{1,2}|\.)(?: (?P<joined>\[\])?.*)?")


class Phrase(Value):
    """Words in a row; a word that ends in `*` may have any ending."""

    idea: str
    rest: tuple[str, ...]


class Entry(Value):
    """What a word means alone, and by their second words the phrases that begin with it, the
    longest first. `loose` are those whose second word may have any ending."""

    idea: str = OTHER
    phrases: dict[str, tuple[Phrase, ...]] = {}
    loose: tuple[Phrase, ...] = ()

    @property
    def opens(self) -> bool:
        return bool(self.phrases or self.loose)

    def with_phrase(self, phrase: Phrase) -> Entry:
        second = phrase.rest[0]
        if second.endswith("*"):
            return replace(self, loose=_longest_first((*self.loose, phrase)))
        known = self.phrases.get(second, ())
        return replace(self, phrases={**self.phrases, second: _longest_first((*known, phrase))})


def _longest_first(phrases: tuple[Phrase, ...]) -> tuple[Phrase, ...]:
    return tuple(sorted(phrases, key=lambda each: -len(each.rest)))


class Lexicon:
    """`joined` are the words of scripts that put no spaces between words."""

    def __init__(self, text: str) -> None:
        self.words: dict[str, Entry] = {}
        self.stems: dict[str, Entry] = {}
        self.joined: dict[str, str] = {}
        for idea, word, joined in _listed(text):
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

    def entry(self, word: str) -> Entry:
        """What is known about a word as it stands in a text."""
        found = self.words.get(word, _NOTHING)
        if found.idea != OTHER:
            return found
        if word[:3] in self._heads:
            for length in self._lengths:
                if stem := self.stems.get(word[:length]):
                    return Entry(
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


_NOTHING = Entry()
# Words that are read all the same when the letters inside of them change places.
_MISSPELT = (
    *("ignore", "disregard", "override", "previous", "instruction", "instructions", "guidelines"),
    *("reveal", "system", "prompt", "password", "passwords", "secret", "secrets", "credentials"),
    *("execute", "delete", "bypass", "forget", "restrictions", "developer", "administrator"),
)


def _letters(word: str) -> tuple[str, str, str]:
    return word[0], word[-1], "".join(sorted(word))


def _listed(text: str) -> list[tuple[str, str, bool]]:
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
