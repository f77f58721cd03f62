"""Reads the words of a shell script: quotes, escapes, expansions and substitutions."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Literal

from hermes.policy.patterns import regex
from hermes.policy.shell.tree import (
    Arithmetic,
    Part,
    ProcessSubstitution,
    Script,
    Substitution,
    Text,
    Unclear,
    Variable,
    Word,
)

DEEPEST = 60
NAME = regex(r"[A-Za-z_]\w*", re.ASCII)
# Characters of an unquoted word without a meaning of their own.
PLAIN = regex(r"[^ \t\n;|&<>()'\"\\$`]+")
IN_DOUBLE = regex(r'[^"\\$`]+')
PARAMETER = regex(r"[A-Za-z_]\w*|\d+|[@*#?$!-]", re.ASCII)
IN_HERE = regex(r"[^\\$`]+")
OPERATORS = regex(r":[-=+?]|##|%%|//|/#|/%|\^\^|,,|[-=+?#%/^,:@]")
ESCAPES = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
ANSI = regex(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
METACHARACTERS = " \t\n;|&<>()"


def ansi(text: str) -> str:
    """Replace backslash escapes as `$'…'` understands them."""
    return ANSI.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
        if digits := found[group]:
            code = int(digits, base)
            return chr(code & 0xFF if base == 8 else code) if code <= 0x10FFFF else ""
    if found[5]:
        return chr(ord(found[5]) & 0x1F)
    return ESCAPES.get(found[6], found[6] if found[6] in "\\'\"?" else "\\" + found[6])


class Words:
    """Reads words from a position in a text."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth

    @abstractmethod
    def _nested(self, end: str) -> Script:
        """Parse the script up to the closing sign and skip the sign."""

    @abstractmethod
    def _inner(self, text: str) -> Script:
        """Parse a script in a text of its own."""

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unclear("commands nested too deeply")

    def _starts(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _char(self) -> str:
        return self._text[self._at : self._at + 1]

    def _word(self) -> Word:
        """Read a word; empty if none begins here."""
        parts: list[Part] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in "<>" and self._text.startswith("(", self._at + 1):
                self._at += 2
                direction: Literal["<", ">"] = "<" if char == "<" else ">"
                parts.append(ProcessSubstitution(script=self._nested(")"), direction=direction))
            elif char in METACHARACTERS:
                break
            elif found := PLAIN.match(self._text, self._at):
                self._at = found.end()
                parts.append(Text(text=found[0]))
            else:
                self._quoting(char, parts)
        return tuple(parts)

    def _quoting(self, char: str, parts: list[Part]) -> None:
        if char == "'":
            parts.append(Text(text=self._single(), quoted=True))
        elif char == '"':
            self._at += 1
            parts.extend(self._double())
        elif char == "\\":
            self._escaped(parts)
        elif char == "$":
            parts.extend(self._dollar(quoted=False))
        else:
            parts.append(Substitution(script=self._backticks()))

    def _escaped(self, parts: list[Part]) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if following == "":
            if any(not isinstance(part, Text) or part.quoted for part in parts):
                # Bash keeps it after plain letters, and drops it after others.
                raise Unclear("a backslash with nothing behind it")
            parts.append(Text(text="\\", quoted=True))
        elif following != "\n":
            parts.append(Text(text=following, quoted=True))

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Unclear("an open quote")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        return text

    def _ansi_string(self) -> str:
        end = self._at + 2
        while self._text[end : end + 1] != "'":
            if end >= len(self._text):
                raise Unclear("an open quote")
            end += 2 if self._text[end] == "\\" else 1
        text = self._text[self._at + 2 : end]
        self._at = end + 1
        return ansi(text).partition("\0")[0]

    def _double(self) -> list[Part]:
        parts = self._expanding('"', IN_DOUBLE)
        if not self._starts('"'):
            raise Unclear("an open quote")
        self._at += 1
        return parts or [Text(text="", quoted=True)]

    def _expanding(self, end: str, plain: re.Pattern[str]) -> list[Part]:
        """Read text in which only expansions have a meaning, up to the closing sign or the end."""
        parts: list[Part] = []
        while self._at < len(self._text) and not (end and self._starts(end)):
            char = self._text[self._at]
            if found := plain.match(self._text, self._at):
                self._at = found.end()
                parts.append(Text(text=found[0], quoted=True))
            elif char == "\\":
                parts.append(Text(text=self._escaped_inside(end), quoted=True))
            elif char == "$":
                parts.extend(self._dollar(quoted=True))
            elif char == "`":
                parts.append(Substitution(script=self._backticks(), quoted=True))
            else:
                self._at += 1
                parts.append(Text(text=char, quoted=True))
        return parts

    def _escaped_inside(self, end: str) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if following == "\n":
            return ""
        if following and following in "$`\\" + end:
            return following
        return "\\" + following

    def _backticks(self) -> Script:
        end = self._at + 1
        inner: list[str] = []
        while self._text[end : end + 1] != "`":
            if end >= len(self._text):
                raise Unclear("an open backtick")
            if self._text[end] == "\\" and self._text[end + 1 : end + 2] in ("`", "\\", "$"):
                end += 1
            inner.append(self._text[end])
            end += 1
        self._at = end + 1
        return self._inner("".join(inner))

    def _dollar(self, *, quoted: bool) -> list[Part]:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "'" and not quoted:
            return [Text(text=self._ansi_string(), quoted=True)]
        if following == '"' and not quoted:
            self._at += 2
            return self._double()
        if following == "(":
            return [self._parenthesis(quoted)]
        if following == "[":
            return [self._old_arithmetic()]
        if following == "{":
            self._at += 2
            self._deeper()
            found = self._braced(quoted)
            self._depth -= 1
            return [found]
        return [self._plain_variable(following, quoted)]

    def _plain_variable(self, following: str, quoted: bool) -> Part:
        if name := NAME.match(self._text, self._at + 1):
            self._at = name.end()
            return Variable(name=name[0], quoted=quoted)
        if following and following in "0123456789@*#?-$!":
            self._at += 2
            return Variable(name=following, quoted=quoted)
        self._at += 1
        return Text(text="$", quoted=True)

    def _parenthesis(self, quoted: bool) -> Part:
        if self._starts("$((") and (end := self._arithmetic_end(self._at + 3)):
            inner = self._text[self._at + 3 : end]
            self._at = end + 2
            return Arithmetic(parts=self._expansions(inner))
        self._at += 2
        return Substitution(script=self._nested(")"), quoted=quoted)

    def _arithmetic_end(self, start: int) -> int:
        """Return the position of the `))` that ends an arithmetic expression, or 0."""
        depth, at = 0, start
        while 0 <= at < len(self._text):
            char = self._text[at]
            if char == "'":
                return 0
            if char == "\\":
                at += 1
            elif char in '"`':
                at = self._text.find(char, at + 1)
                if at < 0:
                    return 0
            elif char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    return at if self._text.startswith("))", at) else 0
                depth -= 1
            at += 1
        return 0

    def _old_arithmetic(self) -> Part:
        end = self._text.find("]", self._at)
        if end < 0:
            raise Unclear("an open bracket")
        inner = self._text[self._at + 2 : end]
        self._at = end + 1
        return Arithmetic(parts=self._expansions(inner))

    def _expansions(self, text: str) -> Word:
        """Return the expansions in a text of its own, read as between double quotes."""
        inner = type(self)(text, self._depth + 1)
        if inner._depth > DEEPEST:
            raise Unclear("commands nested too deeply")
        return tuple(inner._expanding("", IN_HERE))

    def _braced(self, quoted: bool) -> Variable:
        prefix = ""
        if self._char() in ("!", "#") and self._text[self._at + 1 : self._at + 2] != "}":
            prefix = self._char()
            self._at += 1
        found = PARAMETER.match(self._text, self._at)
        if found is None:
            raise Unclear("an unusual expansion")
        name = found[0]
        self._at = found.end()
        index = ""
        if self._starts("["):
            end = self._text.find("]", self._at)
            if end < 0:
                raise Unclear("an open bracket")
            index = self._text[self._at + 1 : end]
            self._at = end + 1
        operator = ""
        if found := OPERATORS.match(self._text, self._at):
            operator = found[0]
            self._at = found.end()
        argument = self._braced_argument(quoted)
        if index and ("$" in index or "`" in index):
            argument = (*argument, *self._expansions(index))
        return Variable(
            name=name,
            operator=operator,
            argument=argument,
            index=index,
            prefix=prefix,
            quoted=quoted,
        )

    def _braced_argument(self, quoted: bool) -> Word:
        parts: list[Part] = []
        while not self._starts("}"):
            if self._at >= len(self._text):
                raise Unclear("an open brace")
            char = self._text[self._at]
            if char in "'\"\\$`" and not (char == "'" and quoted):
                self._quoting(char, parts)
            else:
                self._at += 1
                parts.append(Text(text=char, quoted=quoted))
        self._at += 1
        return tuple(parts)
