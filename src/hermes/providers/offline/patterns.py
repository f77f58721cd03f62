"""Compiles the patterns of the table to regular expressions.

A pattern is a sentence: `[x]` is optional, `(a|b)` is a choice, `<name>` is a macro and `{slot}` a
value. A request must match a pattern from its first to its last word.
"""

from __future__ import annotations

import re
from functools import cached_property

_QUOTED = r"\"[^\"]+\"|“[^”]+”|`[^`]+`|(?<!\w)'[^']+'(?!\w)|‘[^’]+’"
_PATH = r"[\w.~/+@][\w.~/+@-]*"
_STOP_WORDS = (
    "a all an and any both detail each english every everything file files folder folders from "
    "general german here in it me my order our project repo repository short something that the "
    "their them there these this those to today total which with world yesterday you your what "
    "directory directories"
)
_NO_STOP_WORD = rf"(?!(?:{_STOP_WORDS.replace(' ', '|')})(?![\w./~+@-]))"
_KNOWN_FILES = "makefile|readme|license|licence|dockerfile|changelog|authors|procfile|gemfile"
_NO_WEBSITE = r"(?!\S*(?:://|\.(?:com|org|net|io|dev|gov|edu)(?![\w.])))(?!www\.)(?![\d.]+(?!\S))"
_FILE = (
    rf"(?:{_NO_WEBSITE}(?=[\w.~/+@-]*(?:/[\w.~+@-]|\.\w{{1,10}}(?![\w./-]))){_PATH}"
    rf"|(?:{_KNOWN_FILES})(?![\w./-]))"
)
_WORD = rf"{_QUOTED}|{_NO_STOP_WORD}[^\s\"'“”`,;:?!]+"
_FACT_VERBS = (
    "is are was were am has have had do does like likes love loves hate hates prefer prefers use "
    "uses want wants need needs work works live lives speak speaks run runs can must should will"
)
_WITH_VERB = rf"(?=.*\b(?:{_FACT_VERBS.replace(' ', '|')})\b)"
_PROGRAMS = (
    "bash cargo cat cmake curl date df docker du echo env ffmpeg file find gcc gh git go grep head "
    "hostname java jq ls make mkdir mypy node npm npx perl pip pip3 pnpm printf ps pwd pytest "
    "python python3 rg ruby ruff rustc sed sh sleep sort ssh tail tar touch tree uname uniq uptime "
    "uv wc wget whoami yarn"
).replace(" ", "|")

_EXTENSIONS = (
    "python=py markdown=md text=txt json=json yaml=yaml toml=toml csv=csv pdf=pdf html=html "
    "css=css javascript=js typescript=ts java=java rust=rs go=go log=log shell=sh"
)
FILE_TYPES = dict(pair.split("=") for pair in _EXTENSIONS.split())

MACROS = {
    "show": "(show|list|display|print|give|get|see) [me]",
    "what": "(what|which) (is|are)",
    "here": "(here|in here|(in|of|for) (this|the current) (folder|directory|project|repository))",
    "in": "(in|of|inside|under)",
    "folder": "([the] (folder|directory) {folder}|[the] {folder} (folder|directory)|{folder})",
    "where": "[<here>|<in> <folder>]",
    "called": "[called|named]",
    "create": "(create|make|write) [a] [new] [text] [file] <called>",
    "among": "(<here>|in (my|the|all) files|in <folder>|in {file})",
    "known": "(<here>|in (my|the|all) files|in [the] {directory} [folder|directory]|in {file})",
}

SLOTS = {
    "file": rf"{_QUOTED}|it(?!\S)|{_FILE}",
    "other": rf"{_QUOTED}|{_FILE}",
    "path": _FILE,
    "folder": rf"{_QUOTED}|{_NO_STOP_WORD}{_PATH}|there(?!\S)|it(?!\S)",
    "directory": rf"{_QUOTED}|{_PATH}/|(?:src|docs|doc|tests|test|lib|bin|scripts|data)(?![\w./-])",
    "name": rf"{_QUOTED}|{_NO_STOP_WORD}[\w.~/+@*?-]*[.*?][\w.~/+@*?-]+",
    "there": "there|into it|in there|in it",
    "text": _WORD,
    "quoted": _QUOTED,
    "rest": rf"{_QUOTED}|(?!(?:of|from|about|in)\s)[^\s\"“”`].*",
    "fact": rf"{_WITH_VERB}.+",
    "statement": rf"(?=(?:my|I|we|our)\s){_WITH_VERB}.+",
    "number": r"\d{1,4}|(?:one|two|three|four|five|six|seven|eight|nine|ten)(?!\w)",
    "first": r"\d{1,6}",
    "last": r"\d{1,6}",
    "line": r"\d{1,6}",
    "one": "is|one is",
    "part": rf"{_QUOTED}|{_NO_STOP_WORD}[\w.-]+",
    "hidden": "hidden|-a|-A",
    "entries": "files|folders|subfolders|directories",
    "todos": "todos|todo comments|fixmes|fixme comments",
    "marker": "TODO|FIXME",
    "overwrite": "overwrite",
    "size": "biggest|largest|smallest",
    "age": "newest|latest|oldest|most recent",
    "period": "today|yesterday|in the last hour|in the last 24 hours",
    "unit": "lines?|words?|characters?",
    "identifier": rf"{_QUOTED}|(?-i:(?=\S*[A-Z_0-9.()=])[^\s\"'“”`,;:?!]+)",
    "old": _WORD,
    "new": _WORD,
    "range": r"\d{1,6}-\d{1,6}",
    "sum": r".+",
    "type": "|".join(FILE_TYPES),
    "program": rf"(?:{_PROGRAMS})(?![\w.+-])",
    "command": rf"(?:{_PROGRAMS})(?!\S).*",
    "listing": r"ls -[A-Za-z]+(?: [\w./~-]+)?",
    "script": r"\S.*",
}

_NUMBERS = "zero one two three four five six seven eight nine ten".split()
_MACRO = re.compile(r"<(\w+)>")
_TOKEN = re.compile(r"\s*([\[\]()|]|\{\w+\}|[^\s\[\]()|{}]+)")


class Pattern:
    """One pattern, compiled when a text may match it."""

    def __init__(self, source: str) -> None:
        while found := _MACRO.search(source):
            source = source.replace(found[0], MACROS[found[1]])
        self._tokens = _TOKEN.findall(source)
        self._needed = _needed_words(self._tokens)

    def match(self, text: str, words: frozenset[str]) -> dict[str, str] | None:
        """Return the slots of a text that matches as a whole. `words` are its words in lower
        case."""
        if any(words.isdisjoint(choice) for choice in self._needed):
            return None
        regex, names = self._compiled
        matched = regex.fullmatch(f" {text}")
        if matched is None:
            return None
        values = zip(names, matched.groups(), strict=True)
        return {name: _unquote(value) for name, value in values if value is not None}

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], list[str]]:
        """Every part includes the space before it, so that an optional part and its space are
        matched together."""
        names: list[str] = []
        parts: list[str] = []
        for token in self._tokens:
            match token[0]:
                case "[" | "(":
                    parts.append("(?:")
                case "]":
                    parts.append(")?")
                case ")" | "|":
                    parts.append(token)
                case "{":
                    names.append(token[1:-1])
                    parts.append(rf"[ \t]+({SLOTS[token[1:-1]]})")
                case _:
                    parts.append(rf"[ \t]+{re.escape(token)}")
        return re.compile("".join(parts), re.IGNORECASE | re.DOTALL), names


def _needed_words(tokens: list[str]) -> list[set[str]]:
    """Return sets of words; a text that matches has a word of each."""
    needed: list[set[str]] = []
    depth = 0
    choice: set[str] = set()
    complete = starts = False
    for token in tokens:
        match token:
            case "(" | "[":
                complete = (complete if depth else token == "(") and not starts
                choice = choice if depth else set()
                depth += 1
                starts = depth == 1
            case ")" | "]":
                depth -= 1
                if not depth and complete:
                    needed.append(choice)
            case "|":
                starts = depth == 1
            case _:
                is_word = token[0] != "{"
                if not depth and is_word:
                    needed.append({token.casefold()})
                elif starts:
                    choice.add(token.casefold())
                    complete = complete and is_word
                starts = False
    return needed


def parse_number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS.index(text.casefold())


def _unquote(text: str) -> str:
    return text[1:-1] if re.fullmatch(_QUOTED, text) else text
