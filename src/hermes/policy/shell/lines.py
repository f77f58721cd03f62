"""Reads blanks, line ends, here-documents and redirections of a script."""

from __future__ import annotations

import re

from hermes.policy.patterns import regex
from hermes.policy.shell.tree import HereDocument, Redirect, Text, Unclear
from hermes.policy.shell.words import Words

BLANKS = regex(r"(?:[ \t]|\\\n)*+(?:#[^\n]*)?")
KEYWORD = regex(
    r"(?:if|then|elif|else|fi|while|until|do|done|for|select|case|esac|function|time|coproc"
    r"|\{|\}|!|\[\[)(?=[\s;|&<>()]|$)"
)
REDIRECT = regex(
    r"(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())|(&>>|&>)", re.ASCII
)
JOINERS = ("&&", "||", ";", "&", "\n")
# First characters of these tokens.
BLANK = frozenset(" \t\\#")
JOINING = frozenset("&|;\n")
REDIRECTING = frozenset("<>&{0123456789")


class Lines(Words):
    def __init__(self, text: str, depth: int = 0) -> None:
        super().__init__(text, depth)
        self._waiting: list[HereDocument] = []

    def _joiner(self) -> str:
        self._blanks()
        if self._char() not in JOINING or self._starts(";;") or self._starts(";&"):
            return ""
        for joiner in JOINERS:
            if self._starts(joiner):
                self._at += len(joiner)
                if joiner == "\n":
                    self._read_here_documents()
                return joiner
        return ""

    def _blanks(self) -> None:
        """Skip blanks and a comment."""
        if self._text[self._at : self._at + 1] in BLANK and (
            found := BLANKS.match(self._text, self._at)
        ):
            self._at = found.end()

    def _lines(self) -> None:
        """Skip blanks, comments and empty lines."""
        while True:
            self._blanks()
            if not self._starts("\n"):
                return
            self._at += 1
            self._read_here_documents()

    def _redirect(self) -> Redirect | None:
        if self._char() not in REDIRECTING:
            return None
        found = REDIRECT.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        self._blanks()
        operator = found[2] or found[3]
        if operator in ("<<", "<<-"):
            here = self._here(tabs=operator == "<<-")
            self._waiting.append(here)
            return Redirect(operator="<<", here=here, descriptor=found[1] or "")
        word = self._word()
        if not word:
            raise Unclear("a redirection without a target")
        return Redirect(operator=operator, target=word, descriptor=found[1] or "")

    def _here(self, *, tabs: bool) -> HereDocument:
        start = self._at
        word = self._word()
        raw = self._text[start : self._at]
        if not word or not all(isinstance(part, Text) for part in word):
            raise Unclear("an unusual here-document")
        delimiter = "".join(part.text for part in word if isinstance(part, Text))
        return HereDocument(delimiter, quoted=any(sign in raw for sign in "'\"\\"), tabs=tabs)

    def _read_here_documents(self) -> None:
        for here in self._waiting:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at) + 1 or len(self._text)
                line = self._text[self._at : end]
                self._at = end
                line = line.lstrip("\t") if here.tabs else line
                if line.removesuffix("\n") == here.delimiter:
                    break
                lines.append(line)
            text = "".join(lines)
            here.body = (Text(text=text, quoted=True),) if here.quoted else self._expansions(text)
        self._waiting = []

    def _keyword(self, wanted: str) -> None:
        self._lines()
        found = KEYWORD.match(self._text, self._at)
        if found is None or found[0] != wanted:
            raise Unclear(f"a missing `{wanted}`")
        self._at = found.end()
