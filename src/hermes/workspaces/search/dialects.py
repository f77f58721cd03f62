"""A parsed pattern in the words of each engine: the same lines match in all of them."""

from __future__ import annotations

import re

from hermes.workspaces.search import charset
from hermes.workspaces.search.charset import ByteRanges, Ranges
from hermes.workspaces.search.pattern import (
    Chars,
    Either,
    End,
    Joined,
    Node,
    Repeated,
    Start,
    WordEdge,
)


class _Dialect:
    """How one engine writes each part."""

    opening = "(?:"
    start = "^"
    end = r"(?:\r?$)"
    word_edge = r"\b"

    def write(self, node: Node) -> str:
        match node:
            case Chars(ranges=ranges):
                return self.chars(ranges)
            case Start():
                return self.start
            case End():
                return self.end
            case WordEdge():
                return self.word_edge
            case Joined(items=items):
                return "".join(map(self.write, items)) or self.group("")
            case Either(branches=branches):
                return self.group("|".join(map(self.write, branches)))
            case Repeated(item=item, least=least, most=most):
                return self.group(self.write(item)) + _times(least, most)

    def group(self, text: str) -> str:
        return f"{self.opening}{text})"

    def chars(self, ranges: Ranges) -> str:
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return self.code(ranges[0][0])
        return f"[{''.join(self.span(low, high) for low, high in ranges)}]"

    def span(self, low: int, high: int) -> str:
        return self.code(low) if low == high else f"{self.code(low)}-{self.code(high)}"

    def code(self, code: int) -> str:
        raise NotImplementedError


def _times(least: int, most: int | None) -> str:
    match least, most:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _, None:
            return f"{{{least},}}"
    return f"{{{least},{most}}}"


class _Ripgrep(_Dialect):
    # Without Unicode in it, so that a letter with an accent is no word character here either.
    word_edge = r"(?-u:\b)"

    def code(self, code: int) -> str:
        char = chr(code)
        return char if char.isascii() and char.isalnum() else f"\\x{{{code:x}}}"


class _Python(_Dialect):
    start = r"\A"
    end = r"(?:\r?\Z)"

    def code(self, code: int) -> str:
        char = chr(code)
        return char if char.isascii() and char.isalnum() else f"\\U{code:08x}"


class _Grep(_Dialect):
    """Extended regular expressions over bytes: characters beyond ASCII are spelled in UTF-8, so
    no locale has a say. Written as Latin-1, one character per byte."""

    opening = "("
    end = "(\r?$)"

    def chars(self, ranges: Ranges) -> str:
        spellings = [self._spelling(sequence) for sequence in self._sequences(ranges)]
        return spellings[0] if len(spellings) == 1 else self.group("|".join(spellings))

    def _sequences(self, ranges: Ranges) -> list[list[ByteRanges]]:
        """All single bytes together, then each longer spelling by itself."""
        spelled = charset.as_utf8(ranges)
        single: ByteRanges = tuple(one[0] for one in spelled if len(one) == 1)
        found: list[list[ByteRanges]] = [[single]] if single else []
        for longer in spelled:
            if len(longer) > 1:
                found.append([(span,) for span in longer])
        return found

    def _spelling(self, sequence: list[ByteRanges]) -> str:
        return "".join(_bracket(spans) for spans in sequence)


_SPECIAL = "]^-["


def _bracket(spans: ByteRanges) -> str:
    """One byte out of some. In brackets only the place of `]`, `^` and `-` makes them ordinary."""
    if len(spans) == 1 and spans[0][0] == spans[0][1]:
        char = chr(spans[0][0])
        return f"\\{char}" if char in r".[]{}()*+?^$|\\" else char
    members = {code for low, high in spans for code in range(low, high + 1)}
    special = [char for char in _SPECIAL if ord(char) in members]
    runs = charset.union((code, code) for code in members if chr(code) not in _SPECIAL)
    text = "".join(chr(a) if a == b else f"{chr(a)}-{chr(b)}" for a, b in runs)
    has = "".join(special)
    body = ("]" if "]" in has else "") + text + ("[" if "[" in has else "")
    dash = "-" if "-" in has else ""
    if "^" not in has:
        return f"[{body}{dash}]"
    return f"[{body}^{dash}]" if body else f"[{dash}^]"


def for_ripgrep(node: Node) -> str:
    return _Ripgrep().write(node)


def for_grep(node: Node) -> bytes:
    return _Grep().write(node).encode("latin-1")


def for_python(node: Node) -> re.Pattern[str]:
    """For lines decoded with `surrogateescape`: what is no UTF-8 is no character either."""
    return re.compile(_Python().write(node), re.ASCII)
