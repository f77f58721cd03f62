"""Incremental parsing steps over streamed text, and what a call style is.

A style is a generator over a tape. When it needs more text it yields the characters of which one
must arrive before it can continue ("" for any), so a long argument costs nothing while it streams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, TypeVar

from hermes.codec.values import JsonObject, JsonValue
from hermes.providers.textcalls.validation import (
    OfferedTools,
    UnreadableValue,
    parse_object,
    parse_value,
)

T = TypeVar("T")
Steps = Generator[str, None, T]

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z0-9_.\-]*")
_OUTSIDE = re.compile(r"""[^"'\[\]{}()]*+""")
# Compiled on use: few replies have calls as text.
_INSIDE = {
    '"': r'(?:[^"\\]++|\\.)*+',
    "'": r"(?:[^'\\]++|\\.)*+",
    # A single quote is part of the text once the two characters after it are known. Not possessive:
    # early releases of Python 3.11 fail there when an alternative looks ahead.
    '"""': r'(?:[^"\\]|\\.|"(?=..)(?!""))*',
    "'''": r"(?:[^'\\]|\\.|'(?=..)(?!''))*",
}


class NoCall(Exception):
    """The text is not a call of this style."""


class RawCall(NamedTuple):
    """A call as written, not yet checked against a tool. `typed` is False for styles whose values
    are all text."""

    name: str
    arguments: JsonObject
    typed: bool = True


OneCall = Steps[RawCall]
Reading = Steps[tuple[RawCall, ...]]


class TextTape:
    """A text that a parser reads while it arrives."""

    def __init__(self, offer: OfferedTools) -> None:
        self.offer = offer
        self.text = ""  # starts with the markup
        self.at = 0  # the read position
        self.ended = False  # no more text follows
        self.named = ""  # the tool of the started call
        self.begun = False  # more than a mention of the markup was seen

    @property
    def ahead(self) -> str:
        """The next character, "" if it has not arrived."""
        return self.text[self.at : self.at + 1]

    @property
    def finished(self) -> bool:
        """All text was read and no more follows."""
        return self.ended and not self.ahead

    def mark_name(self, name: str) -> str:
        """Record which tool is meant; return its name without a namespace."""
        name = self.offer.strip_namespace(name)
        self.begun = True
        self.named = self.named or name
        return name

    def accept(self, text: str) -> Steps[bool]:
        """Consume the text if it comes next; return whether it did."""
        while True:
            available = self.text[self.at : self.at + len(text)]
            if available == text:
                self.at += len(text)
                return True
            if self.ended or not text.startswith(available):
                return False
            yield ""

    def expect(self, text: str, *, skip: bool = False) -> Steps[None]:
        """Consume the text, with `skip` after spaces; raise NoCall."""
        if skip:
            yield from self.skip_spaces()
        if not (yield from self.accept(text)):
            raise NoCall

    def close(self, *closers: str) -> Steps[None]:
        """Consume spaces and one of these. At the end of the reply they may be missing, because
        some servers hide the closing token; elsewhere raise NoCall."""
        yield from self.skip_spaces()
        if not (yield from self.any_of(*closers)) and not self.finished:
            raise NoCall

    def any_of(self, *texts: str) -> Steps[str]:
        """Consume and return the first of these that comes next, or ""."""
        for text in texts:
            if (yield from self.accept(text)):
                return text
        return ""

    def skip_spaces(self) -> Steps[None]:
        while True:
            self.at = _end(_SPACE, self.text, self.at)
            if self.at < len(self.text) or self.ended:
                return
            yield ""

    def until(self, stop: str, *, most: int = 0) -> Steps[str]:
        """Consume up to and including `stop` and return the text before it. Raise NoCall if that is
        longer than `most`."""
        start = self.at
        while True:
            end = self.text.find(stop, self.at)
            if end >= 0:
                self.at = end + len(stop)
                return self.text[start:end]
            if self.ended or (most and len(self.text) - start > most + len(stop)):
                raise NoCall
            self.at = max(start, len(self.text) - len(stop) + 1)
            yield "" if most else stop[-1]

    def value(self, closer: str, *followers: str) -> Steps[str]:
        """Read the text before `closer`. A closer that is not followed by one of these, ignoring
        spaces, is part of the text."""
        self.begun = True
        start = self.at
        while True:
            yield from self.until(closer)
            end = self.at - len(closer)
            yield from self.skip_spaces()
            here = self.at
            if (yield from self.any_of(*followers)):
                self.at = here
                return self.text[start:end]
            self.at = end + len(closer)

    def word(self) -> Steps[str]:
        """Consume a name."""
        while True:
            end = _end(_NAME, self.text, self.at)
            if end < len(self.text) or self.ended:
                word = self.text[self.at : end]
                self.at = end
                return word
            yield ""

    def tool_name(self) -> Steps[str]:
        """Read the name of an offered tool; raise NoCall as soon as it cannot be one."""
        start = self.at
        while True:
            end = _end(_NAME, self.text, start)
            so_far = self.text[start:end]
            if not self.offer.may_start(so_far):
                raise NoCall
            if end < len(self.text) or self.ended:
                break
            yield ""
        if not self.offer.knows(so_far):
            raise NoCall
        self.at = end
        return so_far

    def balanced_text(self, *, python: bool = False) -> Steps[str]:
        """Read from a bracket to its closing bracket; brackets in strings do not count."""
        if self.ahead not in ("{", "[", "("):
            raise NoCall
        self.begun = True
        start, depth = self.at, 0
        while True:
            self.at = _end(_OUTSIDE, self.text, self.at)
            sign = self.ahead
            if sign in ("'", '"'):
                yield from self._string(sign, python=python)
            elif sign:
                depth += 1 if sign in "{[(" else -1
                self.at += 1
                if depth == 0:
                    return self.text[start : self.at]
            elif self.ended:
                raise NoCall
            else:
                yield "\"'[]{}()"

    def arguments(self) -> Steps[JsonObject]:
        """Skip spaces and parse an object."""
        yield from self.skip_spaces()
        text = yield from self.balanced_text()
        try:
            return parse_object(text)
        except UnreadableValue as error:
            raise NoCall from error

    def _string(self, quote: str, *, python: bool) -> Steps[None]:
        if python:
            while len(self.text) < self.at + 3 and not self.ended:
                yield ""
            if self.text.startswith(quote * 3, self.at):
                quote *= 3
        self.at += len(quote)
        inside = re.compile(_INSIDE[quote], re.DOTALL)
        while True:
            end = _end(inside, self.text, self.at)
            if self.text.startswith(quote, end):
                self.at = end + len(quote)
                return
            if self.ended:
                raise NoCall
            self.at = end
            yield quote[0] if end == len(self.text) else ""


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of a match of a pattern that also matches nothing."""
    found = pattern.match(text, at)
    return found.end() if found else at


def read_section(tape: TextTape, opener: str, closer: str, read: Callable[[], OneCall]) -> Reading:
    """Read calls between two tokens, or one call without them. The last token may be missing at the
    end of the reply."""
    section = yield from tape.accept(opener)
    found: list[RawCall] = []
    while True:
        yield from tape.skip_spaces()
        if found and (not section or tape.finished or (yield from tape.accept(closer))):
            return tuple(found)
        found.append((yield from read()))


def first_of(tape: TextTape, *styles: Reading) -> Reading:
    """Parse with the first of these parsers that fits."""
    start = tape.at
    for style in styles:
        tape.at = start
        try:
            return (yield from style)
        except NoCall:
            continue
    raise NoCall


Read = Callable[[TextTape], Reading]


class CallStyle(NamedTuple):
    """A way in which models write calls as text.

    openers       the texts that a call starts with
    tool_openers  the same, with `{}` for the name of each tool
    line          a call starts only at the start of a line
    marked        the markup is used only for calls; other styles look like ordinary text and count
                  only where nothing but a call can be meant
    closers       the end tokens; one without a start means that something was misread
    ends          the text that begins a tool result which the model made up
    """

    name: str
    read: Read
    openers: tuple[str, ...] = ()
    tool_openers: tuple[str, ...] = ()
    line: bool = False
    marked: bool = True
    closers: tuple[str, ...] = ()
    ends: str = ""


NAMES = ("name", "tool_name", "function", "tool", "function_name", "action")
ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "kwargs")
LISTS = ("tool_calls", "function_call", "tool_call")
# Keys that may accompany a call without meaning.
_METADATA_KEYS = ("id", "type", "tool_call_id", "call_id", "index")
FIRST_KEYS = (*NAMES, *ARGUMENTS, *LISTS, *_METADATA_KEYS)


def parse_calls(text: str, *, strict: bool = False) -> tuple[RawCall, ...]:
    """Parse the calls in the text of an object or list; raise NoCall. With `strict`, a call needs
    arguments: a name alone is not enough."""
    try:
        found = tuple(_raws(parse_value(text), strict=strict))
    except UnreadableValue as error:
        raise NoCall from error
    if not found:
        raise NoCall
    return found


def _raws(value: JsonValue, *, strict: bool) -> Iterator[RawCall]:
    if isinstance(value, list):
        for item in value:
            yield from _raws(item, strict=strict)
        return
    if not isinstance(value, dict):
        raise NoCall
    inner = next((key for key in LISTS if isinstance(value.get(key), list | dict)), "")
    if not inner and isinstance(value.get("function"), dict):
        inner = "function"
    if inner:
        _require_only(value, (inner,))
        yield from _raws(value[inner], strict=strict)
        return
    names = [key for key in NAMES if isinstance(value.get(key), str)]
    argument_keys = [key for key in ARGUMENTS if key in value]
    if len(names) != 1 or len(argument_keys) > 1 or (strict and not argument_keys):
        raise NoCall
    _require_only(value, (names[0], *argument_keys))
    arguments: JsonValue = value[argument_keys[0]] if argument_keys else {}
    if isinstance(arguments, str):
        arguments = parse_object(arguments) if arguments.strip() else {}
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise NoCall
    yield RawCall(value[names[0]], arguments)


def _require_only(value: JsonObject, used: tuple[str, ...]) -> None:
    if any(key not in used and key not in _METADATA_KEYS for key in value):
        raise NoCall
