"""Strategies to find text that was not copied exactly."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

from hermes.tools.edits.indentation import dedent
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
    """Match a block that is indented more or less as a whole."""
    lines, wanted = TextLines(text), rows_of(old)
    goal, size = dedent(wanted), len(wanted)
    candidates = find_rows(lines.rows, wanted, str.strip)
    found = drop_overlaps([i for i in candidates if dedent(lines.rows[i : i + size]) == goal], size)
    return [lines.span(first, size, newline=old.endswith("\n")) for first in found]


def escape_normalised(text: str, old: str) -> list[TextSpan]:
    """Match text that was escaped once too often, for example `\\n` for a new line."""
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
    # The folded text, with the source position of each character and of the end.
    folded = [letter if letter.isascii() else fold_text(letter) for letter in text]
    origin = [index for index, plain in enumerate(folded) for _ in plain] + [len(text)]
    found: list[TextSpan] = []
    for span in exact("".join(folded), fold_text(old)):
        start, end = origin[span.start], origin[span.end]
        # A match must not begin or end inside one original character.
        if origin[span.start - 1] != start and origin[span.end - 1] != end:
            found.append(TextSpan(start=start, end=end))
    return found


def unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _MEANING.get(match[1], match[1]), text)


def fold_text(text: str) -> str:
    return unicodedata.normalize("NFKD", text.translate(_TYPOGRAPHIC))


BLOCK_SIMILARITY = 0.7
LINE_SIMILARITY = 0.8
SIMILAR_LINES = 0.5
SUGGESTED_SIMILARITY = 0.6
# Shorter blocks contain too little to be recognized.
SMALLEST_BLOCK = 3
# A block may have at most this many lines more or less than expected.
_MOST_SLACK = 20
_COMPARED_CHARS = 400
_COMPARED_ROWS = 100
# Lines that occur this often do not help to locate a block.
_TOO_MANY = 2_000
_SUGGESTED = 3
_SUGGESTED_ROWS = 8


def block_anchor(text: str, old: str) -> list[TextSpan]:
    """Match blocks whose first and last line match, and most lines between them."""
    lines, wanted = TextLines(text), [row.strip() for row in rows_of(old)]
    if len(wanted) < SMALLEST_BLOCK or not wanted[0] or not wanted[-1]:
        return []
    rows = [row.strip() for row in lines.rows]
    if rows.count(wanted[0]) > _TOO_MANY:
        return []
    slack = max(1, min(len(wanted) // 4, _MOST_SLACK))
    sizes = range(max(2, len(wanted) - slack), len(wanted) + slack + 1)
    anchored = [
        (first, size)
        for first, row in enumerate(rows)
        if row == wanted[0]
        for size in sizes
        if rows[first + size - 1 : first + size] == [wanted[-1]]
    ]
    good: list[tuple[float, int, int]] = []
    for first, size in anchored:
        score = _block_similarity(rows[first + 1 : first + size - 1], wanted[1:-1])
        if score >= BLOCK_SIMILARITY:
            good.append((score, first, size))
    return _best_apart(lines, good, newline=old.endswith("\n"))


def context_aware(text: str, old: str) -> list[TextSpan]:
    """Match blocks with the same number of lines. The first and last line must be similar, and at
    least half of all lines, by number and by length: a bracket on its own line says little."""
    lines, wanted = TextLines(text), [row.strip() for row in rows_of(old)]
    size = len(wanted)
    if size < SMALLEST_BLOCK or not wanted[0] or not wanted[-1]:
        return []
    rows = [row.strip() for row in lines.rows]
    likenesses = [RowSimilarity(row, atleast=LINE_SIMILARITY) for row in wanted]
    anchored = [
        first
        for first in range(len(rows) - size + 1)
        if likenesses[0].to(rows[first]) and likenesses[-1].to(rows[first + size - 1])
    ]
    if len(anchored) > _TOO_MANY:
        return []
    scored = [(_mean_similarity(likenesses, rows[at : at + size]), at, size) for at in anchored]
    good = [each for each in scored if each[0]]
    return _best_apart(lines, good, newline=old.endswith("\n"))


def _mean_similarity(likenesses: Sequence[RowSimilarity], rows: Sequence[str]) -> float:
    """Return the mean similarity, or 0 when too few rows are similar."""
    pairs = zip(likenesses, rows, strict=True)
    scores = [(len(one.wanted), one.to(row)) for one, row in pairs if one.wanted]
    alike = [length for length, score in scores if score]
    letters = sum(length for length, _ in scores)
    if len(alike) < SIMILAR_LINES * len(scores) or sum(alike) < SIMILAR_LINES * letters:
        return 0.0
    return sum(score for _, score in scores) / len(scores)


def excerpts(text: str, old: str) -> list[str]:
    """Return the places most similar to the wanted block, as numbered lines."""
    rows, wanted = rows_of(text), rows_of(old)
    if not rows or not wanted:
        return []
    at = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    shown: list[range] = []
    for row in _nearest(rows, wanted[at].strip()):
        first = max(0, row - min(at, _SUGGESTED_ROWS // 2))
        span = range(first, min(len(rows), first + min(len(wanted) + 1, _SUGGESTED_ROWS)))
        if all(span.stop <= other.start or other.stop <= span.start for other in shown):
            shown.append(span)
    return ["\n".join(f"{n + 1}|{rows[n][:200]}" for n in each) for each in shown[:_SUGGESTED]]


class RowSimilarity:
    """The similarity of rows to a wanted one: 1 for equal, 0 below `atleast`."""

    def __init__(self, wanted: str, *, atleast: float) -> None:
        self.wanted = wanted
        self._atleast = atleast
        self._known = {wanted: 1.0}
        self._matcher = SequenceMatcher(None, "", wanted[:_COMPARED_CHARS], autojunk=False)

    def to(self, row: str) -> float:
        if row not in self._known:
            matcher, least = self._matcher, self._atleast
            matcher.set_seq1(row[:_COMPARED_CHARS])
            ratio = 0.0
            if matcher.real_quick_ratio() >= least and matcher.quick_ratio() >= least:
                ratio = matcher.ratio()
            self._known[row] = ratio if ratio >= least else 0.0
        return self._known[row]


def _nearest(rows: Sequence[str], wanted: str) -> list[int]:
    """Return the rows most similar to the wanted one. Shared trigrams select the candidates."""
    triples = _triples(wanted)
    shared = {row: len(triples & _triples(row)) / (len(row) + 1) for row in {*rows}}
    likely = sorted(
        (n for n, row in enumerate(rows) if shared[row]), key=lambda n: -shared[rows[n]]
    )
    likeness = RowSimilarity(wanted, atleast=SUGGESTED_SIMILARITY)
    scored = [(likeness.to(rows[n].strip()), n) for n in likely[:_COMPARED_ROWS]]
    return [n for score, n in sorted(scored, key=lambda pair: (-pair[0], pair[1])) if score]


def _triples(row: str) -> set[str]:
    return {row[at : at + 3] for at in range(min(len(row), _COMPARED_CHARS) - 2)}


def _block_similarity(rows: Sequence[str], wanted: Sequence[str]) -> float:
    if len(rows) != len(wanted):
        return SequenceMatcher(None, rows, wanted, autojunk=False).ratio()
    if not rows:
        return 1.0
    pairs = zip(rows, wanted, strict=True)
    return sum(RowSimilarity(one, atleast=0.0).to(other) for one, other in pairs) / len(rows)


def _best_apart(
    lines: TextLines, scored: list[tuple[float, int, int]], *, newline: bool
) -> list[TextSpan]:
    """Return the best of overlapping places, in text order."""
    kept: list[tuple[int, int]] = []
    for _score, first, size in sorted(scored, key=lambda each: -each[0]):
        if all(first + size <= other or other + length <= first for other, length in kept):
            kept.append((first, size))
    return [lines.span(first, size, newline=newline) for first, size in sorted(kept)]
