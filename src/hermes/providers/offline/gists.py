"""The keywords of one language, for requests that match no pattern."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path

from hermes.codec.json import decode
from hermes.codec.values import Value
from hermes.providers.offline.spelling import MAX_NEAR, distance

SHORTEST_MISSPELT = 5

FOLDER = Path(__file__).parent / "gists"


class KeywordData(Value):
    """A file of `gists/`. `topics` are groups of phrases with one meaning, in any inflection
    ("=installed" is exact); `soft` words carry no meaning. `readings` are patterns by kind whose
    elements may be in any order; a bare name follows one of `before_names`, unless it may be
    anywhere (`{folder*}`). A step among others starts with a word of `asking`. `definitions` start
    a question about a meaning; so do the phrases of `meanings` if a single word follows."""

    endings: dict[str, str]
    soft: tuple[str, ...]
    asking: tuple[str, ...]
    definitions: tuple[str, ...]
    meanings: tuple[str, ...]
    before_names: tuple[str, ...]
    topics: dict[str, tuple[str, ...]]
    readings: dict[str, tuple[str, ...]]


class Keywords:
    """The data with its indexes."""

    def __init__(self, data: KeywordData) -> None:
        self.data = data
        self.soft = frozenset(data.soft)
        self.asking = frozenset(data.asking)
        self.before_names = frozenset(data.before_names)
        self.readings = tuple(
            (kind, text) for kind, texts in data.readings.items() for text in texts
        )
        self._endings = tuple(data.endings.items())
        self._last_letters = frozenset(ending[-1] for ending in data.endings)

    def stem(self, word: str) -> str:
        """The word without its ending; a doubled last letter is reduced: "running" is "run"."""
        if word[-1:] in self._last_letters:
            for ending, instead in self._endings:
                if word.endswith(ending) and len(word) - len(ending) > 2:
                    word = word[: -len(ending)] + instead
                    break
        return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word

    @cached_property
    def phrases(self) -> dict[str, list[tuple[tuple[str, ...], str]]]:
        """The phrases of topics as stems, by their first stem."""
        found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for name, phrases in self.data.topics.items():
            for phrase in phrases:
                stems = tuple(w if w[0] == "=" else self.stem(w) for w in phrase.split())
                found.setdefault(stems[0], []).append((stems, f"<{name}>"))
        return found

    @cached_property
    def plain(self) -> frozenset[str]:
        """The words that readings contain literally."""
        elements = {part.rstrip("?") for _, text in self.readings for part in _elements(text)}
        plain = [part for part in elements if part[0] not in "<{"]
        return frozenset(word for part in plain for word in part.split("|"))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.stem(word) for group in self.vocabulary.values() for word in group)

    @cached_property
    def vocabulary(self) -> dict[str, list[str]]:
        """Every word by its first letter, for spelling correction."""
        phrases = [phrase for group in self.data.topics.values() for phrase in group]
        words = " ".join(phrases).replace("=", "").split()
        found: dict[str, list[str]] = {}
        for word in sorted({*words, *self.soft, *self.plain}):
            found.setdefault(word[0], []).append(word)
        return found

    def knows(self, text: str) -> bool:
        """True if all words have a meaning here, so that they are not a name. Capitals make a name:
        "TODO"."""
        if any(word[1:] != word[1:].casefold() for word in text.split()):
            return False
        words = text.casefold().split()
        return all(word in self.soft or self.stem(word) in self._known for word in words)

    def is_keyword(self, word: str) -> bool:
        """True if the word starts a phrase of a topic or occurs in a reading."""
        return self.stem(word) in self.phrases or f"={word}" in self.phrases or word in self.plain


@lru_cache(maxsize=8)
def load_keywords(code: str) -> Keywords | None:
    """None for a language without such a file."""
    file = FOLDER / f"{code}.json"
    return Keywords(decode(KeywordData, file.read_bytes())) if file.is_file() else None


@lru_cache(maxsize=256)
def near_keywords(gists: Keywords, word: str) -> tuple[str, ...]:
    """The words that this may be a single typo of. In a short word another letter usually makes
    another word: "life" is not "lie", "story" not "store"."""
    if len(word) < SHORTEST_MISSPELT or not word.isalpha():
        return ()
    return tuple(
        other
        for other in gists.vocabulary.get(word[0], ())
        if abs(len(other) - len(word)) <= 1
        and (len(other) != len(word) or len(word) > 6 or sorted(other) == sorted(word))
        and distance(word, other, 1) == 1
    )[:MAX_NEAR]


def _elements(text: str) -> list[str]:
    return text.partition(" -> ")[0].split()
