"""Splits text into tokens with positions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from hermes.codec.values import Value, replace

TokenKind = Literal["word", "number", "path", "glob", "url", "quoted", "mark"]


class TextToken(Value):
    """`text` is as written, without quotes; `word` is for comparison and empty for quoted text.
    `near` holds words that `word` may be a typo of."""

    text: str
    word: str
    kind: TokenKind
    start: int
    end: int
    near: tuple[str, ...] = ()


_PIECE = re.compile(
    r"""
    ```(?:[\w-]*\n)?(?P<block>.+?)```
    | `(?P<tick>[^`]+)`
    | "(?P<straight>[^"]+)"
    | [“„](?P<curly>[^“”„]+)[“”]
    | «(?P<angle>[^«»]+)»
    | [‘‚](?P<curved>[^‘’‚\n]+)[‘’](?!\w)
    | (?<!\w)'(?P<single>[^'\n]+)'(?!\w)
    | (?P<line>\n)
    | (?P<plain>[^\s"`“”„«»]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_TAIL = re.compile(r"(?s)(.*?)([.,;:!?…]+)")
_SUM_SIGNS = frozenset("-+*/^%().,0123456789")
_NUMBER = re.compile(r"#?\d+(?:[.,]\d+)*%?")
_FILE_NAME = re.compile(r"\.?[\w@+=-]+(?:\.[\w@+=-]+)*\.[^\W\d_]\w{0,9}|\.[^\W\d_][\w.-]*")
_NOT_PATHS = frozenset({"and/or", "e.g", "i.e", "z.b", "d.h", "u.a"})


def tokenise(text: str, expand: Mapping[str, str]) -> list[TextToken]:
    """`expand` spells contractions out: "what's" becomes two words at the same position."""
    return [token for piece in _PIECE.finditer(text) for token in _tokens_of(piece, expand)]


def word_of(text: str) -> str:
    return text.casefold().replace("’", "'")


def _tokens_of(piece: re.Match[str], expand: Mapping[str, str]) -> Iterator[TextToken]:
    group = piece.lastgroup or "plain"
    text = piece[group]
    if group == "line":
        yield TextToken(text=text, word=text, kind="mark", start=piece.start(), end=piece.end())
        return
    if group != "plain":
        inner = text.strip("\n") if group == "block" else text
        yield TextToken(text=inner, word="", kind="quoted", start=piece.start(), end=piece.end())
        return
    body, marks = _without_tail(text)
    middle = piece.start() + len(body)
    if body:
        yield from _expand(_plain(body, piece.start()), expand)
    if marks:
        yield TextToken(text=marks, word=marks[0], kind="mark", start=middle, end=piece.end())


def _without_tail(text: str) -> tuple[str, str]:
    """A word and the punctuation after it. Dots that are a folder stay."""
    if text in (".", "..") or text.endswith(("/.", "/..")):
        return text, ""
    found = _TAIL.fullmatch(text)
    return (found[1], found[2]) if found else (text, "")


def _plain(text: str, start: int) -> TextToken:
    return TextToken(
        text=text, word=word_of(text), kind=_kind_of(text), start=start, end=start + len(text)
    )


def _kind_of(text: str) -> TokenKind:
    if _NUMBER.fullmatch(text):
        return "number"
    if "://" in text or text.startswith("www."):
        return "url"
    if _is_sum(text) or word_of(text) in _NOT_PATHS:
        return "word"
    if "*" in text or "?" in text:
        return "glob"
    if "/" in text or text[0] == "~" or text in (".", "..") or _FILE_NAME.fullmatch(text):
        return "path"
    return "word"


def _is_sum(text: str) -> bool:
    return _SUM_SIGNS.issuperset(text) and any(letter.isdigit() for letter in text)


def _expand(token: TextToken, expand: Mapping[str, str]) -> Iterator[TextToken]:
    spelled_out = expand.get(token.word)
    if spelled_out is None:
        yield token
        return
    for word in spelled_out.split():
        yield replace(token, text=word, word=word)
