"""Exact strategies to find text that was not copied character by character: each tolerates one kind
of mistake."""

from __future__ import annotations

import re
import unicodedata

from hermes.tools.edits.indent import dedented
from hermes.tools.edits.text import Lines, Span, apart, places, rows_of

_ESCAPE = re.compile(r"\\([nt\"'\\])")
_MEANING = {"n": "\n", "t": "\t"}
_PIECES = re.compile(r"[ \t]*+\n|[ \t]++|[^ \t\n]++")
# Typographic characters that no Unicode compatibility form maps to ASCII.
_TYPOGRAPHIC = str.maketrans(
    dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‐‑‒–—―−", "-")
)


def exact(text: str, old: str) -> list[Span]:
    found: list[Span] = []
    start = text.find(old)
    while start >= 0:
        found.append(Span(start=start, end=start + len(old)))
        start = text.find(old, start + len(old))
    return found


def line_trimmed(text: str, old: str) -> list[Span]:
    """Ignore blanks at the ends of lines."""
    lines, wanted = Lines(text), rows_of(old)
    found = apart(places(lines.rows, wanted, str.rstrip), len(wanted))
    return [lines.span(first, len(wanted), newline=old.endswith("\n")) for first in found]


def whitespace_normalised(text: str, old: str) -> list[Span]:
    """Treat all runs of blanks as equal."""
    if not old.strip():
        return []
    squeezed, origin = _squeezed(text)
    inner, _ = _squeezed(old.strip(" \t"))
    found: list[Span] = []
    done = 0
    for span in exact(squeezed, inner):
        start, end = span.start, span.end
        if old[0] in " \t" and start > done and squeezed[start - 1] == " ":
            start -= 1
        if old[-1] in " \t" and squeezed[end : end + 1] == " ":
            end += 1
        found.append(Span(start=origin[start], end=origin[end]))
        done = end
    return found


def _squeezed(text: str) -> tuple[str, list[int]]:
    """Return the text with one space for every run of blanks and none at line ends; with the source
    position of each character and of the end."""
    pieces: list[str] = []
    origin: list[int] = []
    for match in _PIECES.finditer(text):
        piece = match[0]
        if piece[0] in " \t\n":
            pieces.append("\n" if piece[-1] == "\n" else " ")
            origin.append(match.start())
        else:
            pieces.append(piece)
            origin.extend(range(match.start(), match.end()))
    return "".join(pieces), [*origin, len(text)]


def indentation_flexible(text: str, old: str) -> list[Span]:
    """The whole block may be indented more or less."""
    lines, wanted = Lines(text), rows_of(old)
    goal, size = dedented(wanted), len(wanted)
    candidates = places(lines.rows, wanted, str.strip)
    found = apart([i for i in candidates if dedented(lines.rows[i : i + size]) == goal], size)
    return [lines.span(first, size, newline=old.endswith("\n")) for first in found]


def escape_normalised(text: str, old: str) -> list[Span]:
    """The text was escaped once too often, for example `\\n` for a new line."""
    plain = unescaped(old)
    return exact(text, plain) if plain != old else []


def trimmed_boundary(text: str, old: str) -> list[Span]:
    """Ignore blanks and empty lines around the text."""
    inner = old.strip()
    return exact(text, inner) if inner and inner != old else []


def unicode_normalised(text: str, old: str) -> list[Span]:
    """Typographic quotes, dashes, spaces and composed letters equal their plain forms."""
    if text.isascii() and old.isascii():
        return []
    folded, origin = _folded_with_places(text)
    found: list[Span] = []
    for span in exact(folded, folded_text(old)):
        start, end = origin[span.start], origin[span.end]
        # A match must not begin or end inside one original character.
        if origin[span.start - 1] != start and origin[span.end - 1] != end:
            found.append(Span(start=start, end=end))
    return found


def unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _MEANING.get(match[1], match[1]), text)


def folded_text(text: str) -> str:
    return unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHIC))


def _folded_with_places(text: str) -> tuple[str, list[int]]:
    """Return the folded text, with the source position of each character and of the end."""
    folded: list[str] = []
    origin: list[int] = []
    for index, letter in enumerate(text):
        plain = letter if letter.isascii() else folded_text(letter)
        folded.append(plain)
        origin.extend([index] * len(plain))
    return "".join(folded), [*origin, len(text)]
