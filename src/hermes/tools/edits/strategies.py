"""Exact strategies to find text that was not copied character by character: each tolerates one kind
of mistake."""

from __future__ import annotations

import re
import unicodedata

from hermes.tools.edits.indent import dedent
from hermes.tools.edits.text import TextLines, TextSpan, drop_overlaps, find_rows, rows_of

_ESCAPE = re.compile(r"\\([nt\"'\\])")
_MEANING = {"n": "\n", "t": "\t"}
_PIECES = re.compile(r"[ \t]*+\n|[ \t]++|[^ \t\n]++")
# Typographic characters that no Unicode compatibility form maps to ASCII.
_TYPOGRAPHIC = str.maketrans(
    dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟", '"') | dict.fromkeys("‐‑‒–—―−", "-")
)


def exact(text: str, old: str) -> list[TextSpan]:
    found: list[TextSpan] = []
    start = text.find(old)
    while start >= 0:
        found.append(TextSpan(start=start, end=start + len(old)))
        start = text.find(old, start + len(old))
    return found


def line_trimmed(text: str, old: str) -> list[TextSpan]:
    """Ignore blanks at the ends of lines."""
    lines, wanted = TextLines(text), rows_of(old)
    found = drop_overlaps(find_rows(lines.rows, wanted, str.rstrip), len(wanted))
    return [lines.span(first, len(wanted), newline=old.endswith("\n")) for first in found]


def whitespace_normalised(text: str, old: str) -> list[TextSpan]:
    """Treat all runs of blanks as equal."""
    if not old.strip():
        return []
    squeezed, origin = _squeeze_blanks(text)
    inner, _ = _squeeze_blanks(old.strip(" \t"))
    found: list[TextSpan] = []
    done = 0
    for span in exact(squeezed, inner):
        start, end = span.start, span.end
        if old[0] in " \t" and start > done and squeezed[start - 1] == " ":
            start -= 1
        if old[-1] in " \t" and squeezed[end : end + 1] == " ":
            end += 1
        found.append(TextSpan(start=origin[start], end=origin[end]))
        done = end
    return found


def _squeeze_blanks(text: str) -> tuple[str, list[int]]:
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


def indentation_flexible(text: str, old: str) -> list[TextSpan]:
    """The whole block may be indented more or less."""
    lines, wanted = TextLines(text), rows_of(old)
    goal, size = dedent(wanted), len(wanted)
    candidates = find_rows(lines.rows, wanted, str.strip)
    found = drop_overlaps([i for i in candidates if dedent(lines.rows[i : i + size]) == goal], size)
    return [lines.span(first, size, newline=old.endswith("\n")) for first in found]


def escape_normalised(text: str, old: str) -> list[TextSpan]:
    """The text was escaped once too often, for example `\\n` for a new line."""
    plain = unescape(old)
    return exact(text, plain) if plain != old else []


def trimmed_boundary(text: str, old: str) -> list[TextSpan]:
    """Ignore blanks and empty lines around the text."""
    inner = old.strip()
    return exact(text, inner) if inner and inner != old else []


def unicode_normalised(text: str, old: str) -> list[TextSpan]:
    """Typographic quotes, dashes, spaces and composed letters equal their plain forms."""
    if text.isascii() and old.isascii():
        return []
    folded, origin = _folded_with_places(text)
    found: list[TextSpan] = []
    for span in exact(folded, fold_text(old)):
        start, end = origin[span.start], origin[span.end]
        # A match must not begin or end inside one original character.
        if origin[span.start - 1] != start and origin[span.end - 1] != end:
            found.append(TextSpan(start=start, end=end))
    return found


def unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _MEANING.get(match[1], match[1]), text)


def fold_text(text: str) -> str:
    return unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHIC))


def _folded_with_places(text: str) -> tuple[str, list[int]]:
    """Return the folded text, with the source position of each character and of the end."""
    folded: list[str] = []
    origin: list[int] = []
    for index, letter in enumerate(text):
        plain = letter if letter.isascii() else fold_text(letter)
        folded.append(plain)
        origin.extend([index] * len(plain))
    return "".join(folded), [*origin, len(text)]
