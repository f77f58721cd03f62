"""Text that is still being written, and the steps by which a style reads a call from it.

A style is a generator over a tape. Where more text is needed it yields the characters of which one
must come before going on can help ("" for any), so a long argument costs nothing while it comes.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import NamedTuple, TypeVar

from hermes.codec.values import JsonObject
from hermes.providers.textcalls.offer import Offer

T = TypeVar("T")
Steps = Generator[str, None, T]

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z0-9_.\-]*")
_OUTSIDE = re.compile(r"""[^"'\[\]{}()]*+""")
_INSIDE = {
    '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL),
    # A single quote is part of the text once the two characters after it are known. Not possessive:
    # early releases of Python 3.11 go wrong there when an alternative looks ahead.
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?=..)(?!""))*', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?=..)(?!''))*", re.DOTALL),
}


class NoCall(Exception):
    """What stands here is no call of this style."""


class Raw(NamedTuple):
    """A call as it is written, not yet held against any tool. `typed` is False where the style has
    only text for values."""

    name: str
    arguments: JsonObject
    typed: bool = True


Reading = Steps[tuple[Raw, ...]]


class Tape:
    """`text` begins with the mark-up; `at` is how far it is read; `ended` means that nothing more
    comes. `named` is the tool that a call was begun for, "" before that; `begun` tells that more
    than a mention of the mark-up was seen."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.text = ""
        self.at = 0
        self.ended = False
        self.named = ""
        self.begun = False

    @property
    def ahead(self) -> str:
        """The next character, "" when it has not come."""
        return self.text[self.at : self.at + 1]

    def name(self, name: str) -> str:
        """Tell early which tool is meant."""
        self.begun = True
        self.named = self.named or name
        return name

    def has(self, text: str) -> Steps[bool]:
        """Whether this comes next; then it is read."""
        while True:
            come = self.text[self.at : self.at + len(text)]
            if come == text:
                self.at += len(text)
                return True
            if self.ended or not text.startswith(come):
                return False
            yield ""

    def expect(self, text: str) -> Steps[None]:
        if not (yield from self.has(text)):
            raise NoCall

    def any_of(self, *texts: str) -> Steps[str]:
        """The one of these that comes next and is read, "" for none of them."""
        for text in texts:
            if (yield from self.has(text)):
                return text
        return ""

    def spaces(self) -> Steps[None]:
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text) or self.ended:
                return
            yield ""

    def until(self, stop: str, *, most: int = 0) -> Steps[str]:
        """The text before `stop`, which is read too; NoCall when it is longer than `most`."""
        start = self.at
        while True:
            found = self.text.find(stop, self.at)
            if found >= 0:
                self.at = found + len(stop)
                return self.text[start:found]
            if self.ended or (most and len(self.text) - start > most + len(stop)):
                raise NoCall
            self.at = max(start, len(self.text) - len(stop) + 1)
            yield "" if most else stop[-1]

    def value(self, closer: str, *followers: str) -> Steps[str]:
        """The text before `closer`, where a closer that is followed by none of these, spaces aside,
        is part of the text."""
        self.begun = True
        start = self.at
        while True:
            yield from self.until(closer)
            end = self.at - len(closer)
            yield from self.spaces()
            here = self.at
            if (yield from self.any_of(*followers)):
                self.at = here
                return self.text[start:end]
            self.at = end + len(closer)

    def word(self) -> Steps[str]:
        """A name as far as name characters go."""
        while True:
            found = _NAME.match(self.text, self.at)
            end = found.end() if found else self.at
            if end < len(self.text) or self.ended:
                word = self.text[self.at : end]
                self.at = end
                return word
            yield ""

    def tool(self) -> Steps[str]:
        """The name of a tool on offer; NoCall as soon as it can be none."""
        start = self.at
        while True:
            found = _NAME.match(self.text, start)
            end = found.end() if found else start
            so_far = self.text[start:end]
            if not self.offer.begins(so_far):
                raise NoCall
            if end < len(self.text) or self.ended:
                break
            yield ""
        if not self.offer.knows(so_far):
            raise NoCall
        self.at = end
        return so_far

    def balanced(self, *, python: bool = False) -> Steps[str]:
        """From a bracket to the one that closes it; brackets in strings do not count."""
        if self.ahead not in ("{", "[", "("):
            raise NoCall
        self.begun = True
        start, depth = self.at, 0
        while True:
            found = _OUTSIDE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            sign = self.ahead
            if sign in ("'", '"') and sign:
                yield from self._string(sign, python=python)
                continue
            if sign:
                depth += 1 if sign in "{[(" else -1
                self.at += 1
                if depth == 0:
                    return self.text[start : self.at]
                continue
            if self.ended:
                raise NoCall
            yield "\"'[]{}()"

    def _string(self, quote: str, *, python: bool) -> Steps[None]:
        if python:
            while len(self.text) < self.at + 3 and not self.ended:
                yield ""
            if self.text.startswith(quote * 3, self.at):
                quote *= 3
        self.at += len(quote)
        inside = _INSIDE[quote]
        while True:
            found = inside.match(self.text, self.at)
            end = found.end() if found else self.at
            if self.text.startswith(quote, end):
                self.at = end + len(quote)
                return
            if self.ended:
                raise NoCall
            self.at = end
            yield quote[0] if end == len(self.text) else ""


def first_of(tape: Tape, *styles: Reading) -> Reading:
    """What the first of these that fits reads."""
    start = tape.at
    for style in styles:
        tape.at = start
        try:
            return (yield from style)
        except NoCall:
            continue
    raise NoCall
