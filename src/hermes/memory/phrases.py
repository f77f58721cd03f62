"""Finds copies of texts to forget: verbatim, re-wrapped, escaped or truncated."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "[forgotten]"
# Minimum length at which a truncated copy counts.
LEAST_CUT = 24
# Minimum length at which a substring counts, in the turn that said it.
LEAST_PART = 5
# Share of words at which a sentence counts as a paraphrase, in the turn that said it.
MOST_WORDS = 0.6

_GAP = r"(?:\s|\\+[nrt]|\\+u00(?:0[9aAdD]|20|[aA]0))+"
_BEFORE = r"(?:(?<![^\W_])|(?<=\\[nrt]))"
_AFTER = r"(?![^\W_])"
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]*")
_SMALL = frozenset(
    "the and that this with from for are was has have had you your user users its his her their "
    "our not but remember please note always never will would should can der die das und dass ist"
    .split()
)  # fmt: skip


class Phrases:
    """Texts to forget. Matching ignores case and the kind of white space, and accepts JSON escapes
    at any depth."""

    def __init__(self, texts: Iterable[str]) -> None:
        normalised = dict.fromkeys(" ".join(text.split()) for text in texts)
        # Longest first: one may contain another.
        self._phrases = [
            _Phrase(text) for text in sorted(normalised, key=len, reverse=True) if text
        ]

    def may_contain(self, raw: str) -> bool:
        """Return quickly whether a phrase may be in the text: False only if none can be."""
        low = raw.lower()
        return any(phrase.hint in low for phrase in self._phrases)

    def remove_phrases(self, text: str, *, near: bool = False) -> str:
        """Replace each copy by a mark; `near` also replaces paraphrases and substrings."""
        if near:
            if any(phrase.contains(text) for phrase in self._phrases):
                return MARK
            text = _SENTENCE.sub(self._sentence, text)
        if self.may_contain(text):
            for phrase in self._phrases:
                text = phrase.remove_phrases(text)
        return text

    def _sentence(self, match: re.Match[str]) -> str:
        words = _keywords(match[0])
        if any(phrase.is_paraphrased_by(words) for phrase in self._phrases):
            tail = "\n" if match[0].endswith("\n") else ""
            return MARK + tail
        return match[0]


class _Phrase:
    def __init__(self, text: str) -> None:
        words = text.split()
        self._text = text.casefold()
        self._keywords = _keywords(text)
        head = 1
        while head < len(words) and len(" ".join(words[:head])) < LEAST_CUT:
            head += 1
        # Every copy contains at least this head.
        begun = " ".join(words[:head])
        self.hint = max(re.findall(r"[A-Za-z0-9]+", begun), key=len, default="").lower()
        start = _BEFORE if words[0][:1].isalnum() else ""
        is_whole = head == len(words)
        end = _AFTER if is_whole and words[-1][-1:].isalnum() else ""
        body = _GAP.join(map(_word, words[:head]))
        self._head = re.compile(start + body + end, re.IGNORECASE)
        self._rest = [re.compile(_GAP + _word(word), re.IGNORECASE) for word in words[head:]]
        self._letters = [[_letter(c) for c in word] for word in words[head:]]

    def contains(self, text: str) -> bool:
        part = " ".join(text.casefold().split())
        return len(part) >= LEAST_PART and part in self._text

    def is_paraphrased_by(self, words: frozenset[str]) -> bool:
        if len(self._keywords) < 2:
            return False
        return len(self._keywords & words) >= MOST_WORDS * len(self._keywords)

    def remove_phrases(self, text: str) -> str:
        parts: list[str] = []
        done = 0
        while found := self._head.search(text, done):
            end = self._end(text, found.end())
            parts += (text[done : found.start()], MARK if end else found[0])
            done = end or found.end()
        return "".join((*parts, text[done:])) if parts else text

    def _end(self, text: str, at: int) -> int:
        """Return the end of the copy, or 0 when the text continues differently."""
        for index, word in enumerate(self._rest):
            found = word.match(text, at)
            if found is None:
                return self._truncated_end(text, at, index)
            at = found.end()
        return at

    def _truncated_end(self, text: str, at: int, index: int) -> int:
        """Return the end of a truncated copy, which ends with dots or at the end of the text."""
        gap = re.compile(_GAP).match(text, at)
        end = gap.end() if gap else at
        for letter in self._letters[index] if gap else ():
            found = re.compile(letter, re.IGNORECASE).match(text, end)
            if found is None:
                break
            end = found.end()
        rest = text[end:]
        if not rest.strip():
            return len(text)
        return end if rest.startswith(("…", "...", "\\u2026")) else 0


def _word(word: str) -> str:
    return "".join(map(_letter, word))


def _letter(letter: str) -> str:
    """Return a pattern that matches a letter verbatim or with JSON escapes."""
    plain = re.escape(letter)
    if letter == "\\":
        return r"\\+"
    if letter in "\"'/":
        return rf"(?:\\*{plain}|\\+u00{ord(letter):02x})"
    if letter.isascii() and letter not in "<>&":
        return plain
    units = letter.encode("utf-16-be")
    pairs = (units[i : i + 2].hex() for i in range(0, len(units), 2))
    return "(?:" + plain + "|" + "".join(rf"\\+u{pair}" for pair in pairs) + ")"


def _keywords(text: str) -> frozenset[str]:
    words = re.findall(r"[\w-]+", text.casefold().replace("'s", "").replace("’s", ""))
    return frozenset(
        w for w in words if w not in _SMALL and (len(w) > 2 or any(c.isdigit() for c in w))
    )
