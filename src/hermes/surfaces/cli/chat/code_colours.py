"""Syntax colours of code, from pygments. Slow to load, so imported only when needed."""

from __future__ import annotations

from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound

# The terminal's own colours, so that code is readable on light and dark backgrounds.
_CODES = (
    (Token.Comment, "2;3"),
    (Token.Keyword.Constant, "34"),
    (Token.Keyword, "35"),
    (Token.Operator.Word, "35"),
    (Token.Name.Function, "34"),
    (Token.Name.Class, "1;34"),
    (Token.Name.Decorator, "36"),
    (Token.Name.Builtin, "36"),
    (Token.Name.Exception, "36"),
    (Token.Name.Tag, "34"),
    (Token.Name.Attribute, "36"),
    (Token.Literal.String, "32"),
    (Token.Literal.Number, "33"),
    (Token.Generic.Inserted, "32"),
    (Token.Generic.Deleted, "31"),
    (Token.Generic.Heading, "1"),
    (Token.Generic.Subheading, "36"),
    (Token.Generic.Prompt, "2"),
)


def language_of(path: str) -> str:
    """The language of a file by its name; "" if unknown."""
    try:
        return str(get_lexer_for_filename(path).aliases[0])
    except (ClassNotFound, IndexError):
        return ""


@lru_cache(maxsize=16)
def highlight(
    language: str, lines: tuple[str, ...], before: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The lines with colours, unchanged if the language is unknown. `before` gives the lexer its
    context."""
    lexer = _lexer(language)
    if lexer is None or not lines:
        return lines
    rows = [""]
    for kind, value in lexer.get_tokens("\n".join((*before, *lines))):
        code = _code(kind)
        first, *others = value.split("\n")
        rows[-1] += _paint(first, code)
        rows += [_paint(piece, code) for piece in others]
    # The lexer ends its last line.
    rows += [""] * (len(before) + len(lines) - len(rows))
    return tuple(rows[len(before) :][: len(lines)])


@lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    try:
        lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return lexer


@lru_cache(maxsize=512)
def _code(kind: object) -> str:
    return next((code for parent, code in _CODES if kind in parent), "")


def _paint(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and text.strip() else text
