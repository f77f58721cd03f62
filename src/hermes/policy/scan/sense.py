"""Reads a text as a row of ideas and finds the rows that an injection consists of."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice

from hermes.codec.json import convert
from hermes.codec.values import Value
from hermes.policy.scan.finding import Sign
from hermes.policy.scan.lexicon import OTHER, Entry, lexicon
from hermes.policy.scan.rules import RANK, Scope

END, FILLER, DENIAL = "|", "_", "n"
_MOST = 60
_COMMON = (
    r"\.(?:ssh(?!/\S*\.pub)|aws|netrc|npmrc|pypirc|gnupg|kube|cursor|git-credentials|env(?!\.(?:ex|te|sa|di)))\b"
    r"|\d{1,3}(?:\.\d{1,3}){3}|://|@(?=\w+[\w.-]*\.)"
    r"|[.!?;](?=\s|$|[\"')\]])|\n[ \t]*(?:\n|[-*#>|]|\d+\.)|[:,\n]"
)
_KEY_FILE = r"\bid_(?:rsa|ed25519|ecdsa|dsa)(?:\.pub)?\b|"
_PLAIN = re.compile(_KEY_FILE + r"[a-z0-9]+(?:'[a-z]+)?|" + _COMMON)
_ENDS = frozenset(".!?;\n。！？।؟")
_SIGNS = {":": ":", ",": ",", "\n": "/", "://": "d", "@": "d"}
_CALLED = re.compile(r"(?<=[|/:])([_.]{0,3})(a(?:_*,|[^|:]{0,4}:)|t_*(?:[_.]{0,2}):)")
_ASKED = re.compile(r"(n[^|,:]{0,8})N")
_GAPS = {".": r"[^|]?", "..": r"[^|]{0,4}?", "...": r"[^|]{0,9}?", ">>": r".{0,16}?"}


class Sense(Value, forbid_unknown_fields=True):
    """One family of meanings; the fields are explained in the file."""

    id: str
    scope: Scope
    weight: str
    shapes: tuple[str, ...]
    denied: bool = False
    fits: str = ""


class _File(Value, forbid_unknown_fields=True):
    sense: tuple[Sense, ...]


@cache
def senses() -> tuple[Sense, ...]:
    text = files("hermes.policy.scan").joinpath("senses.toml").read_text(encoding="utf-8")
    return convert(_File, tomllib.loads(text)).sense


@cache
def _shapes(scope: Scope, kind: str) -> tuple[tuple[Sense, re.Pattern[str]], ...]:
    return tuple(
        (sense, re.compile("|".join(map(_expression, sense.shapes))))
        for sense in senses()
        if RANK[sense.scope] <= RANK[scope] and sense.fits in ("", kind)
    )


def _expression(shape: str) -> str:
    return "".join(_GAPS.get(part) or f"[{part}]_*" for part in shape.split())


@cache
def _words() -> re.Pattern[str]:
    """Also for scripts other than Latin. Where words are not set apart, those that are known are
    cut out and every other sign counts as a word."""
    joined = "|".join(sorted(map(re.escape, lexicon().joined), key=len, reverse=True))
    return re.compile(
        _KEY_FILE + rf"{joined}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]"
        r"|[\u0900-\u0963\u0966-\u0dff]+"
        r"|(?:(?![\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W_])+(?:['’]\w+)?|"
        + _COMMON
        + "|[。！？।؟]"
    )


class Row:
    """The ideas of a text in order, with a sign for every end of a sentence."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._spans: list[tuple[int, int]] = []
        self._expression = _PLAIN if plain.isascii() else _words()
        words = self._expression.findall(plain)
        self.ideas = _called(END + "".join(_ideas(words)))

    def place(self, first: int, last: int) -> tuple[int, int]:
        """Where the ideas from `first` to `last` stand in the text."""
        if not self._spans:
            self._spans = [match.span() for match in self._expression.finditer(self._plain)]
        last = min(last, len(self._spans))
        return self._spans[max(first - 1, 0)][0], self._spans[last - 1][1]


def _ideas(words: list[str]) -> list[str]:
    known = {word: _entry(word) for word in set(words)}
    ideas = [known[word].idea for word in words]
    opening = {word for word, entry in known.items() if entry.phrases}
    if opening:
        done = 0
        for at, word in enumerate(words):
            if word in opening and at >= done:
                done = _phrased(known[word], words, ideas, at)
    return ideas


def _phrased(entry: Entry, words: list[str], ideas: list[str], at: int) -> int:
    """Writes what a phrase means in the place of its words; the place after it."""
    for phrase in entry.phrases:
        end = at + 1 + len(phrase.rest)
        following = words[at + 1 : end]
        if len(following) == len(phrase.rest) and all(map(_same, phrase.rest, following)):
            ideas[at:end] = [phrase.idea, *FILLER * len(phrase.rest)]
            return end
    return at + 1


def _same(wanted: str, word: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


def _entry(word: str) -> Entry:
    if word in _SIGNS:
        return Entry(idea=_SIGNS[word])
    if word[0] in _ENDS:
        return Entry(idea="k" if word[0] == "." and len(word) > 1 else END)
    if word[0].isdigit():
        return Entry(idea="d" if "." in word else OTHER)
    if word.startswith("id_"):
        return Entry(idea=OTHER if word.endswith(".pub") else "k")
    joined = lexicon().joined.get(word)
    return Entry(idea=joined) if joined else lexicon().entry(word.replace("’", "'"))


def _called(ideas: str) -> str:
    """Who is called at the beginning of a sentence is spoken to. Never to do something without a
    question is the opposite of doing it without one."""
    asked = _ASKED.sub(r"\1.", ideas) if "N" in ideas else ideas
    return _CALLED.sub(
        lambda found: found[1] + ("A" if found[2][0] == "a" else "T") + found[2][1:], asked
    )


def in_sense(plain: str, scope: Scope, kind: str = "") -> Iterator[Sign]:
    """Everything in a text, with small letters, that means what an injection means."""
    row = Row(plain)
    for sense, expression in _shapes(scope, kind):
        for match in islice(expression.finditer(row.ideas), _MOST):
            if not sense.denied and _is_denied(row.ideas, match.start()):
                continue
            start, end = row.place(match.start(), match.end() - 1)
            yield Sign(id=sense.id, start=start, end=end, strong=sense.weight == "strong")


def _is_denied(ideas: str, at: int) -> bool:
    before = ideas[max(0, at - 3) : at].rpartition(END)[2].replace(FILLER, "")[-2:]
    return DENIAL in before or ideas[at + 1 : at + 2] == DENIAL
