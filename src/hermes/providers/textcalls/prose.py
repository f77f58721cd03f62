"""Tracks the text before a call, to tell a call from an example or a quotation."""

from __future__ import annotations

import re

_FENCES = ("```", "~~~")
_CONTEXT_CHARS = 400
_QUOTES = "\"'“‘«‹„`(（「『"
_SENTENCE_ENDS = ".!?:;…。！？：；>*_)）]-—–"
_SENTENCE = r"(?<=[.!?。！？])\s+"
# Patterns are compiled on use: most runs never see a call in text. What follows one of these is an
# example.
_EXAMPLE_WORDS = (
    r"\b(?:for example|e\.\s?g\.|for instance|as an example|such as|(?:like|as) (?:this|so|follows)"
    r"|(?:is|here['’]s|show \w+|give \w+|see) (?:an|one|another) example|examples? of"
    r"|examples?(?: \w+){0,2}\s*:|looks? like|hypothetical\w*|imagine|suppose|pretend"
    r"|zum beispiel|z\.\s?b\.|beispielsweise|par exemple|por ejemplo|ad esempio|por exemplo)"
    r"|например|例如|例えば|比如"
)
# What follows may be talk about a call, unless the sentence announces an action.
_TALK = (
    r"\b(?:(?:would|could|might) (?:be|call|do|look|run|say|send|use|write)"
    r"|you (?:can|could|may|might|would|should)|(?:the|this|that|right|correct) (?:form|format"
    r"|syntax|template)|sample|placeholder|instead of|rather than|never|don['’]?t|do not|avoid"
    r"|wrong|invalid|contains?|contents? (?:is|are|of)|says|said|wrote|returned|printed|logged"
    r"|outputs? (?:is|was)|quot\w+|here (?:is|are|was)|here['’]s)\b"
)
_ANNOUNCING = (
    r"\b(?:i['’]?ll|i will|i['’]?m (?:going|about)|i am (?:going|about)|let me|let['’]?s"
    r"|i (?:need|have|want) to|i (?:should|can|must) (?:now )?\w+|calling|running|now i"
    r"|i now|first,? i|next,? i)\b"
)


class TextContext:
    """Tracks the visible text: lines, code fences and quotes."""

    def __init__(self) -> None:
        self.has_text = False
        self._fenced = False
        self._line = ""
        self._above = ""
        self._ticks = 0

    def add(self, text: str) -> None:
        self.has_text = self.has_text or not text.isspace()
        *whole, rest = text.split("\n")
        for line in whole:
            self._end_line(line)
        self._grow(rest)

    def call(self) -> None:
        """A call was here; what follows starts a new line."""
        self._line = ""
        self._ticks = 0

    @property
    def at_line_start(self) -> bool:
        return not self._line or self._line.isspace()

    @property
    def in_code(self) -> bool:
        return self._fenced or self._ticks % 2 == 1 or self._opens_fence

    @property
    def in_quotes(self) -> bool:
        """The previous character opens a quotation."""
        line = self._line.rstrip(" \t")
        return bool(line) and line[-1] in _QUOTES

    @property
    def at_boundary(self) -> bool:
        """At the end of a line or sentence, or directly attached to the last word; not in the
        middle of a sentence."""
        line = self._line
        if not line.strip():
            return True
        return not line[-1].isspace() or line.rstrip()[-1] in _SENTENCE_ENDS

    @property
    def announces_call(self) -> bool:
        """The last sentence announces an action."""
        return _matches(_ANNOUNCING, self._last_sentence)

    @property
    def introduces_example(self) -> bool:
        """The last sentence introduces an example or a quotation."""
        last = self._last_sentence
        return _matches(_EXAMPLE_WORDS, last) or (_matches(_TALK, last) and not self.announces_call)

    @property
    def _last_sentence(self) -> str:
        line = self._line.strip() or self._above
        return re.split(_SENTENCE, line)[-1]

    @property
    def _opens_fence(self) -> bool:
        return self._line.lstrip().startswith(_FENCES)

    def _grow(self, text: str) -> None:
        self._ticks += text.count("`")
        line = self._line + text
        self._line = line if len(line) <= 2 * _CONTEXT_CHARS else line[:3] + line[-_CONTEXT_CHARS:]

    def _end_line(self, text: str) -> None:
        self._grow(text)
        if self._opens_fence:
            self._fenced = not self._fenced
        stripped = self._line.strip()
        self._above = stripped[-_CONTEXT_CHARS:] or self._above
        self._line = ""
        self._ticks = 0


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
