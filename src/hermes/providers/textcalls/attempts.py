"""Finds where a call may start, judges the text before it, and reads it."""

from __future__ import annotations

import re
from typing import NamedTuple

from hermes.providers.textcalls.parsing import CallStyle, NoCall, RawCall, Steps, TextTape
from hermes.providers.textcalls.validation import OfferedTools


class OpenerMatch(NamedTuple):
    """A position, the opener there, and the styles that start with it. Without styles, the text may
    become an opener."""

    at: int
    opener: str
    styles: tuple[CallStyle, ...]


class OpenerIndex:
    """Finds openers in a text. Some match anywhere in a line, others only at its start."""

    def __init__(self, styles: tuple[CallStyle, ...], names: tuple[str, ...]) -> None:
        self._styles: dict[str, tuple[CallStyle, ...]] = {}
        lined: set[str] = set()
        anywhere: set[str] = set()
        for style in styles:
            made = (form.format(name) for form in style.tool_openers for name in names)
            for opener in (*style.openers, *made):
                self._styles[opener] = (*self._styles.get(opener, ()), style)
                (lined if style.line else anywhere).add(opener)
        self._firsts = "".join(sorted({opener[0] for opener in anywhere}))
        self._anywhere = tuple(sorted(anywhere, key=len, reverse=True))
        self._lined = tuple(sorted(lined, key=len, reverse=True))
        self._halves = _prefixes(anywhere)
        self._line_halves = _prefixes(lined) | self._halves

    def find(self, text: str, *, at_line_start: bool) -> OpenerMatch | None:
        """Find the first position of a complete or partial opener."""
        best = self._in_line(text)
        at = 0 if at_line_start else text.find("\n") + 1
        if at == 0 and not at_line_start:
            return best
        while at >= 0 and (best is None or at <= best.at):
            if (lined := self._at_line_start(text, at)) is not None:
                return lined if best is None or lined.at < best.at else best
            at = text.find("\n", at) + 1 or -1
        return best

    def _in_line(self, text: str) -> OpenerMatch | None:
        match: OpenerMatch | None = None
        for first in self._firsts:
            at = text.find(first)
            while at >= 0 and (match is None or at < match.at):
                if text.startswith(self._anywhere, at):
                    match = self._opening(text, at, self._anywhere)
                elif text[at:] in self._halves:
                    match = OpenerMatch(at, "", ())
                at = text.find(first, at + 1)
        return match

    def _at_line_start(self, text: str, at: int) -> OpenerMatch | None:
        start = len(text) - len(text[at:].lstrip(" \t"))
        # A longer opener may still be incomplete.
        if start < len(text) and text[start:] in self._halves:
            return OpenerMatch(start, "", ())
        if text.startswith(self._lined, start):
            return self._opening(text, start, self._lined)
        if start < len(text) and text[start:] in self._line_halves:
            return OpenerMatch(start, "", ())
        return None

    def _opening(self, text: str, at: int, openers: tuple[str, ...]) -> OpenerMatch:
        opener = next(opener for opener in openers if text.startswith(opener, at))
        return OpenerMatch(at, opener, self._styles[opener])


def _prefixes(openers: set[str]) -> frozenset[str]:
    return frozenset(opener[:size] for opener in openers for size in range(1, len(opener)))


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

    def start_line(self) -> None:
        """Note that what follows starts a new line."""
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
        """Whether the previous character opens a quotation."""
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
        """Whether the last sentence announces an action."""
        return _matches(_ANNOUNCING, self._last_sentence)

    @property
    def introduces_example(self) -> bool:
        """Whether the last sentence introduces an example or a quotation."""
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
        self._above = self._line.strip()[-_CONTEXT_CHARS:] or self._above
        self.start_line()


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


_NAME = re.compile(r'"(?:tool_)?name"\s*:\s*"([A-Za-z0-9_.\-]+)"')
_PEEKED = 300


class CallPosition(NamedTuple):
    """What the text before a call implies."""

    vetoed: bool  # the call is an example or a quotation
    boundary: bool  # the call is not in the middle of a sentence
    announced: bool
    first: bool

    @staticmethod
    def after(prose: TextContext) -> CallPosition:
        return CallPosition(
            vetoed=prose.has_text and prose.introduces_example,
            boundary=prose.at_boundary,
            announced=prose.announces_call,
            first=not prose.has_text,
        )

    def allows(self, style: CallStyle, trusted: frozenset[str]) -> bool:
        """Return whether a style may be parsed here. Marked styles are parsed even when vetoed, to
        find their end."""
        if style.marked or self.first:
            return True
        return not self.vetoed and (style.name in trusted or self.announced)


class CallAttempt:
    def __init__(
        self,
        text: str,
        opener: str,
        styles: tuple[CallStyle, ...],
        position: CallPosition,
        offer: OfferedTools,
    ) -> None:
        self.opener = opener
        self.styles = styles
        self.position = position
        self.named = False
        self.tape = TextTape(offer)
        self.tape.text = text
        self._steps = _try_styles(self.tape, styles)
        self._new: list[str] = []
        self._wake = ""

    def add(self, text: str) -> bool:
        """Add text; return whether `advance` can make progress."""
        self._new.append(text)
        return not self._wake or any(sign in text for sign in self._wake)

    def advance(self) -> tuple[CallStyle, tuple[RawCall, ...]] | None:
        """Return the calls and their style, or None while more text is needed. Raise NoCall."""
        self.tape.text = self.text
        self._new.clear()
        try:
            self._wake = next(self._steps)
        except StopIteration as done:
            found: tuple[CallStyle, tuple[RawCall, ...]] = done.value
            return found
        return None

    @property
    def text(self) -> str:
        """All text so far."""
        return self.tape.text + "".join(self._new) if self._new else self.tape.text

    @property
    def tool_name(self) -> str:
        """The offered tool that is being called, "" while unclear."""
        if self.position.vetoed or not self.position.boundary:
            return ""
        name = self.tape.named
        if not name:
            found = _NAME.search(self.tape.text[:_PEEKED] + "".join(self._new)[:_PEEKED])
            name = self.tape.offer.strip_namespace(found[1]) if found else ""
        return name if self.tape.offer.knows(name) else ""


def _try_styles(
    tape: TextTape, styles: tuple[CallStyle, ...]
) -> Steps[tuple[CallStyle, tuple[RawCall, ...]]]:
    """Parse with the first style that fits the text."""
    for style in styles:
        tape.at = 0
        try:
            return style, (yield from style.read(tape))
        except NoCall:
            continue
    raise NoCall
