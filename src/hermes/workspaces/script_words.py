"""Splits a bash script into simple commands, well enough to give advice about them.

It understands quotes, comments and here-documents; `$(…)` is part of a word. Safety decisions use
the full parser of the policy package."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.codec.values import Value


class SimpleCommand(Value):
    """Words without their quotes, and the operator that ends the command ("" at the end)."""

    words: tuple[str, ...]
    end: str = ""


_OPERATORS = re.compile(r"&&|\|\||;;&?|;&|\|&|[;&|()\n]")
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(?:&>>?|>>|>&|>\||<<<|<<-?|<>|<&|[<>])")
_PLAIN = re.compile(r"[^\s\"'\\$`;&|()<>#]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=.*", re.DOTALL)
_KEYWORDS = frozenset(("!", "do", "elif", "else", "if", "then", "time", "until", "while", "{"))

# Programs that run another one, with their options that take a value.
_WRAPPERS = {
    "builtin": "",
    "command": "",
    "doas": "uC",
    "env": "uCS",
    "exec": "a",
    "ionice": "cnp",
    "nice": "n",
    "stdbuf": "ioe",
    "sudo": "ugpChrtTUDR",
    "time": "fo",
}


def simple_commands(script: str) -> list[SimpleCommand]:
    return list(_Reader(script).commands())


def executed(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that really runs, without keywords, assignments and wrapper programs."""
    rest = list(words)
    while rest:
        name = rest[0].rsplit("/", 1)[-1]
        if rest[0] in _KEYWORDS or _ASSIGNMENT.fullmatch(rest[0]):
            rest.pop(0)
        elif name in _WRAPPERS:
            rest = rest[1 + len(options(tuple(rest), _WRAPPERS[name])) :]
        else:
            return (name, *rest[1:])
    return ()


def sudo_options(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the options of a `sudo` among the wrappers of a command, or None."""
    for at, word in enumerate(words):
        name = word.rsplit("/", 1)[-1]
        if name == "sudo":
            return options(words[at:], _WRAPPERS["sudo"])
        passing = name in _WRAPPERS or name in _KEYWORDS or word.startswith("-")
        if not passing and not _ASSIGNMENT.fullmatch(word):
            return None
    return None


def options(words: tuple[str, ...], with_value: str) -> tuple[str, ...]:
    """Return the words after the first that are options, or values of options."""
    found: list[str] = []
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-":
        found.append(rest.pop(0))
        if found[-1] == "--":
            break
        takes = not found[-1].startswith("--") and found[-1][-1] in with_value
        if takes and rest:
            found.append(rest.pop(0))
    return tuple(found)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\\\n", "")
        self._at = 0
        self._here_ends: list[tuple[str, bool]] = []

    def commands(self) -> Iterator[SimpleCommand]:
        words: list[str] = []
        while self._at < len(self._text):
            operator = self._operator()
            if operator is None:
                word = self._next_word()
                if word is not None:
                    words.append(word)
                continue
            if words:
                yield SimpleCommand(words=tuple(words), end=operator)
            words = []
        if words:
            yield SimpleCommand(words=tuple(words))

    def _operator(self) -> str | None:
        self._skip_blanks()
        if _REDIRECTION.match(self._text, self._at):
            return None
        match = _OPERATORS.match(self._text, self._at)
        if not match:
            return None
        self._at = match.end()
        if match[0] == "\n":
            self._skip_here_documents()
        return match[0]

    def _skip_blanks(self) -> None:
        while self._text[self._at : self._at + 1] in (" ", "\t", "\r"):
            self._at += 1
        if self._text.startswith("#", self._at):
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end

    def _next_word(self) -> str | None:
        """Return None for a redirection, whose target is skipped."""
        if match := _REDIRECTION.match(self._text, self._at):
            self._at = match.end()
            self._skip_blanks()
            target = self._word()
            if match[0].endswith(("<<", "<<-")):
                self._here_ends.append((target, match[0].endswith("-")))
            return None
        return self._word() if self._at < len(self._text) else None

    def _word(self) -> str:
        out = ""
        while self._at < len(self._text):
            char = self._text[self._at]
            if plain := _PLAIN.match(self._text, self._at):
                out += plain[0]
                self._at = plain.end()
            elif char == "#" and out:
                out += char
                self._at += 1
            elif char in "'\"\\$`":
                out += self._quoted(char)
            else:
                break
        return out

    def _quoted(self, char: str) -> str:
        start = self._at
        match char:
            case "'":
                return self._until("'", start + 1)
            case "\\":
                self._at += 2
                return self._text[start + 1 : start + 2]
            case '"':
                self._at = _closing_quote(self._text, start + 1)
                return re.sub(r"\\([$`\"\\])", r"\1", self._text[start + 1 : self._at - 1])
            case "`":
                return "`" + self._until("`", start + 1) + "`"
        if self._text.startswith("$'", start):
            self._at += 1
            return self._until("'", start + 2)
        self._at = _closing_bracket(self._text, start + 1)
        return self._text[start : self._at]

    def _until(self, end: str, start: int) -> str:
        found = self._text.find(end, start)
        found = len(self._text) if found < 0 else found
        self._at = found + 1
        return self._text[start:found]

    def _skip_here_documents(self) -> None:
        for word, tabs in self._here_ends:
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if tabs else line) == word:
                    break
        self._here_ends.clear()


def _closing_quote(text: str, at: int) -> int:
    """Return the position after the double quote that ends what began before `at`."""
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 2
        elif text[at] == "$":
            at = _closing_bracket(text, at + 1)
        else:
            at += 1
    return min(at + 1, len(text))


def _closing_bracket(text: str, at: int) -> int:
    """Return the position after `(…)` or `{…}` with nested brackets; `at` when there is none."""
    pairs = {"(": ")", "{": "}"}
    close = pairs.get(text[at : at + 1])
    if close is None:
        return at
    at += 1
    while at < len(text) and text[at] != close:
        char = text[at]
        if char == "\\":
            at += 2
        elif char == "'":
            end = text.find("'", at + 1)
            at = len(text) if end < 0 else end + 1
        elif char == '"':
            at = _closing_quote(text, at + 1)
        elif char in pairs:
            at = _closing_bracket(text, at)
        else:
            at += 1
    return min(at + 1, len(text))
