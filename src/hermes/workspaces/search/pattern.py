"""The regular expressions of a search: one dialect, whatever program does the searching.

It is what the common engines share: literals, classes, groups, alternatives, repetition, line
anchors, \\b and (?i). `\\d`, `\\w`, `\\s` and `\\b` are about ASCII; a character is a valid UTF-8
sequence; `$` also matches before a carriage return."""

from __future__ import annotations

import re
from typing import NoReturn

from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.workspaces.search import charset
from hermes.workspaces.search.charset import Ranges

MAX_REPEAT = 1_000
MAX_SIZE = 4_000


class Chars(Value):
    ranges: Ranges


class Start(Value):
    pass


class End(Value):
    pass


class WordEdge(Value):
    pass


class Joined(Value):
    items: tuple[Node, ...]


class Either(Value):
    branches: tuple[Node, ...]


class Repeated(Value):
    """`most` is None for no limit."""

    item: Node
    least: int
    most: int | None


Node = Chars | Start | End | WordEdge | Joined | Either | Repeated

_SETS = {"d": charset.DIGIT, "w": charset.WORD, "s": charset.SPACE}
_CONTROLS = {"t": 9, "r": 13, "f": 12, "v": 11, "a": 7}
_NAMED = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "blank": ((9, 9), (32, 32)),
    "digit": charset.DIGIT,
    "lower": ((0x61, 0x7A),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": charset.SPACE,
    "upper": ((0x41, 0x5A),),
    "word": charset.WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_HEX = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
_GROUP = re.compile(r"\?(?:P?<[A-Za-z_]\w*>|:|([imsu]*)(?:-([imsu]+))?([:)]))")


def parse(pattern: str) -> Node:
    """The tree of a pattern; ToolError says what is wrong with it and where."""
    try:
        pattern.encode()
    except UnicodeEncodeError as error:
        raise ToolError("The pattern is not valid Unicode.") from error
    reader = _Reader(pattern)
    node = reader.alternatives()
    if reader.more():
        reader.fail("unmatched ')'; write \\) for the character")
    if size(node) > MAX_SIZE:
        reader.fail("too many repetitions; make the counts smaller")
    return _essential(node)


def _essential(node: Node) -> Node:
    """The part that decides whether a line matches: at either end of a pattern, a repetition
    needs no more than its least count."""
    items = list(node.items) if isinstance(node, Joined) else [node]
    for end in (0, -1):
        while items and isinstance(item := items[end], Repeated) and item.most != item.least:
            items[end : end + 1 or None] = [_least(item)] if item.least else []
    return items[0] if len(items) == 1 else Joined(items=tuple(items))


def _least(item: Repeated) -> Repeated:
    return Repeated(item=item.item, least=item.least, most=item.least)


def size(node: Node) -> int:
    """How many parts the pattern has with its counts written out."""
    match node:
        case Joined(items=parts) | Either(branches=parts):
            return 1 + sum(map(size, parts))
        case Repeated(item=item, least=least, most=most):
            return size(item) * max(1, least, most or 0)
        case _:
            return 1


def wide_size(node: Node) -> int:
    """The same, counting only classes that reach beyond ASCII."""
    match node:
        case Chars(ranges=ranges):
            return int(len(ranges) > 1 and ranges[-1][1] > 0x7F)
        case Joined(items=parts) | Either(branches=parts):
            return sum(map(wide_size, parts))
        case Repeated(item=item, least=least, most=most):
            return wide_size(item) * max(1, least, most or 0)
        case _:
            return 0


class _Reader:
    """Recursive descent over the text of a pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ignore_case = False

    def more(self) -> bool:
        return self._at < len(self._text)

    def fail(self, what: str) -> NoReturn:
        raise ToolError(f"Invalid regex {self._text!r}: {what} (at character {self._at + 1}).")

    def alternatives(self) -> Node:
        branches = [self._sequence()]
        while self._took("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Either(branches=tuple(branches))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self.more() and self._text[self._at] not in "|)":
            item = self._item()
            if item is not None:
                items.append(self._repeated(item))
        return items[0] if len(items) == 1 else Joined(items=tuple(items))

    def _took(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _item(self) -> Node | None:
        char = self._text[self._at]
        if char in "*+?":
            self.fail(f"nothing to repeat before '{char}'; write \\{char} for the character")
        self._at += 1
        match char:
            case ".":
                return Chars(ranges=charset.ANY)
            case "^":
                return Start()
            case "$":
                return End()
            case "(":
                return self._group()
            case "[":
                return Chars(ranges=self._class())
            case "\\":
                return self._escape()
            case "\n":
                self._fail_line_break()
        return self._chars(_one(char))

    def _chars(self, ranges: Ranges, *, negated: bool = False) -> Chars:
        if self._ignore_case:
            ranges = charset.in_both_cases(ranges)
        return Chars(ranges=charset.all_but(ranges) if negated else ranges)

    def _group(self) -> Node | None:
        """None for flags that hold until the end of the group around them."""
        outer = self._ignore_case
        if self._took("?"):
            self._at -= 1
            match = _GROUP.match(self._text, self._at)
            if not match:
                self.fail("look-around, back-references and such groups are not supported")
            self._at = match.end()
            if match[3]:
                self._ignore_case = "i" in match[1] or (outer and "i" not in (match[2] or ""))
            if match[3] == ")":
                return None
        node = self.alternatives()
        if not self._took(")"):
            self.fail("missing ')'; write \\( for the character")
        self._ignore_case = outer
        return node

    def _repeated(self, item: Node) -> Node:
        counts = self._counts()
        if counts is None:
            return item
        if isinstance(item, Start | End | WordEdge):
            self.fail("an anchor cannot be repeated")
        least, most = counts
        if max(least, most or 0) > MAX_REPEAT or (most is not None and least > most):
            self.fail(f"a repetition count must be in order and at most {MAX_REPEAT}")
        self._took("?")  # whether as few or as many: a line matches or not
        if self.more() and (self._text[self._at] in "*+?" or self._count_ahead()):
            self.fail("multiple repeat")
        return Repeated(item=item, least=least, most=most)

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._took(sign):
                return counts
        if not (match := self._count_ahead()):
            return None
        self._at = match.end()
        least, comma, most = match.groups()
        if comma:
            return int(least or 0), int(most) if most else None
        return int(least), int(least)

    def _count_ahead(self) -> re.Match[str] | None:
        """A brace that is no count is a character like any other."""
        match = _COUNT.match(self._text, self._at)
        return match if match and (match[1] or match[3]) else None

    def _escape(self) -> Node:
        if self._took("b"):
            return WordEdge()
        if self._took("A"):
            return Start()
        if self._took("z") or self._took("Z"):
            return End()
        ranges, negated = self._escaped()
        return self._chars(ranges, negated=negated)

    def _escaped(self) -> tuple[Ranges, bool]:
        """The set after a backslash, and whether it is everything but that."""
        if not self.more():
            self.fail("a backslash at the end; write \\\\ for the character")
        if match := _HEX.match(self._text, self._at):
            self._at = match.end()
            return self._code(int(match[1] or match[2] or match[3], 16)), False
        char = self._text[self._at]
        self._at += 1
        if char.lower() in _SETS:
            return _SETS[char.lower()], char.isupper()
        if char in _CONTROLS:
            return _one(chr(_CONTROLS[char])), False
        if char == "n":
            self._fail_line_break()
        if char.isascii() and char.isalnum():
            self._at -= 1
            self.fail(f"'\\{char}' is not supported")
        return _one(char), False

    def _code(self, code: int) -> Ranges:
        if not charset.common(charset.ANY, ((code, code),)):
            self.fail("no such character in a line of text")
        return ((code, code),)

    def _fail_line_break(self) -> NoReturn:
        self.fail("a search looks at single lines; the pattern cannot hold a line break")

    def _class(self) -> Ranges:
        negated = self._took("^")
        found: list[Ranges] = []
        first = True
        while first or not self._took("]"):
            if not self.more():
                self.fail("missing ']'; write \\[ for the character")
            found.append(self._class_part())
            first = False
        ranges = charset.common(charset.ANY, charset.union(*found))
        if self._ignore_case:
            ranges = charset.in_both_cases(ranges)
        if negated:
            ranges = charset.all_but(ranges)
        if not ranges:
            self.fail("the class matches nothing")
        return ranges

    def _class_part(self) -> Ranges:
        low = self._class_item()
        after = self._text[self._at + 1 : self._at + 2]
        if not self._text.startswith("-", self._at) or after in ("]", ""):
            return low
        self._at += 1
        high = self._class_item()
        if not _is_single(low) or not _is_single(high) or high[0][0] < low[0][0]:
            self.fail("bad range in a class")
        return ((low[0][0], high[0][0]),)

    def _class_item(self) -> Ranges:
        if self._text.startswith("[:", self._at) and (end := self._text.find(":]", self._at)) > 0:
            name = self._text[self._at + 2 : end]
            self._at = end + 2
            if name.removeprefix("^") not in _NAMED:
                self.fail(f"no class named [:{name}:]")
            ranges = _NAMED[name.removeprefix("^")]
            return charset.all_but(ranges) if name.startswith("^") else ranges
        char = self._text[self._at]
        self._at += 1
        if char == "\n":
            self._fail_line_break()
        if char != "\\":
            return _one(char)
        if self._took("b"):
            return _one("\b")
        ranges, negated = self._escaped()
        return charset.all_but(ranges) if negated else ranges


def _one(char: str) -> Ranges:
    return ((ord(char), ord(char)),)


def _is_single(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]
