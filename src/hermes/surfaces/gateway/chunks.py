"""Splits Markdown into messages that fit a platform, at readable places and never inside a code
span, a link or a character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

Counting = Literal["characters", "utf16", "bytes"]

# Space for the suffix "(i/n)".
SUFFIX_CHARS = 10
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
# What must stay in one piece: code spans, links, emphasis, URLs and character references.
_SPANS = re.compile(
    r"(`+)(?!`)[^\n]*?[^`\n]\1(?!`)"
    r"|!?\[[^\]\n]*\]\([^)\n]*\)"
    r"|<[^>\s][^>\n]*>"
    r"|https?://[^\s)>\]]+"
    r"|\*\*[^*\n]+\*\*|__[^_\n]+__|~~[^~\n]+~~|\|\|[^|\n]+\|\|"
    r"|&[A-Za-z0-9#]+;"
    r"|(?<![A-Za-z0-9_])[*_][^*_\s][^*_\n]*[*_](?![A-Za-z0-9_])"
)
_JOINER = "\u200d"


def count_units(text: str, counting: Counting) -> int:
    """The length of a text as the platform counts it."""
    if counting == "utf16":
        # An emoji counts twice.
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    if counting == "bytes":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text)


class Fence(NamedTuple):
    """A code block: where its opening line begins, where the line after its end begins, and how it
    is opened and closed. `body` is where its code begins."""

    start: int
    body: int
    end: int
    mark: str
    language: str

    @property
    def opening(self) -> str:
        return f"{self.mark}{self.language}\n"


def split_text(text: str, limit: int, counting: Counting = "characters") -> tuple[str, ...]:
    """The text in parts of at most `limit` units. Several parts end with "(i/n)"; a code block that
    continues in the next part is closed and opened again."""
    if count_units(text, counting) <= limit:
        return (text,) if text else ()
    parts = list(_pieces(text, max(1, limit - SUFFIX_CHARS), counting))
    if len(parts) == 1:
        return (parts[0],)
    return tuple(f"{part}{_suffix(n, len(parts), part)}" for n, part in enumerate(parts, 1))


def _suffix(n: int, total: int, part: str) -> str:
    suffix = f"({n}/{total})"
    # After a fence, the suffix needs a line of its own.
    space = "\n" if part.endswith(("```", "~~~")) else " "
    return f"{space}{suffix}" if len(suffix) < SUFFIX_CHARS else ""


def _pieces(text: str, budget: int, counting: Counting) -> Iterator[str]:
    opening = ""
    while text:
        reserved = count_units(opening, counting)
        if reserved + count_units(text, counting) <= budget:
            yield opening + text
            return
        cut = _cut(opening, text, budget, counting)
        piece = opening + text[: cut.end]
        yield f"{piece}\n{cut.mark}" if cut.mark else piece
        text, opening = text[cut.after :], cut.reopening
        if not opening:
            text = text.lstrip("\n")


class Cut(NamedTuple):
    """Where a part ends and the next one begins; inside a code block, how that is closed and
    opened again."""

    end: int
    after: int
    mark: str = ""
    reopening: str = ""


def _cut(opening: str, text: str, budget: int, counting: Counting) -> Cut:
    """The best place to cut `text` after `opening`."""
    whole = opening + text
    window = _prefix(whole, budget, counting)
    fence = next((each for each in _fences(whole) if each.start < window < each.end), None)
    shift = len(opening)
    if fence is None:
        end, after = _prose_cut(whole, window, shift)
        return Cut(end - shift, after - shift)
    fits = count_units(whole[fence.start : fence.end], counting) <= budget
    if fence.start > shift and (fits or fence.start >= window // 2):
        # The block moves to the next part as a whole.
        return Cut(fence.start - 1 - shift, fence.start - shift)
    closing = _prefix(whole, budget - count_units(f"\n{fence.mark}", counting), counting)
    end, after = _code_cut(whole, closing, max(fence.body, shift))
    return Cut(end - shift, after - shift, fence.mark, fence.opening)


def _fences(text: str) -> Iterator[Fence]:
    opened: re.Match[str] | None = None
    for found in FENCE.finditer(text):
        if opened is None:
            opened = found
        elif found[1].startswith(opened[1]) and not found[2].strip():
            yield _fence(opened, min(found.end() + 1, len(text)))
            opened = None
    if opened is not None:
        yield _fence(opened, len(text) + 1)


def _fence(opened: re.Match[str], end: int) -> Fence:
    return Fence(opened.start(), opened.end() + 1, end, opened[1], opened[2].strip())


def _prose_cut(text: str, window: int, least: int) -> tuple[int, int]:
    """The end of a part outside of code blocks, and the start of the next one."""
    spans = [found.span() for found in _SPANS.finditer(text, 0, min(len(text), window + 2_000))]

    def is_free(at: int) -> bool:
        return not any(start < at < end for start, end in spans)

    middle = max(least, window // 2)
    for separator, first in (("\n", middle), (" ", middle), ("\n", least + 1), (" ", least + 1)):
        at = text.rfind(separator, first, window + 1)
        while at > first and not is_free(at):
            at = text.rfind(separator, first, at)
        if at >= first and at > least and is_free(at):
            return at, at + 1
    begin = next((start for start, end in spans if start < window < end), window)
    at = _character_boundary(text, begin if begin > least else window)
    at = at if at > least else _next_boundary(text, window)
    return at, at


def _code_cut(text: str, window: int, body: int) -> tuple[int, int]:
    at = text.rfind("\n", body, window + 1)
    if at > body:
        return at, at + 1
    at = _character_boundary(text, window)
    at = at if at > body else _next_boundary(text, max(window, body))
    return at, at


def _prefix(text: str, budget: int, counting: Counting) -> int:
    """How many characters fit."""
    if counting == "characters":
        return min(len(text), max(budget, 1))
    used = 0
    for at, letter in enumerate(text):
        used += count_units(letter, counting)
        if used > budget:
            return max(at, 1)
    return len(text)


def _character_boundary(text: str, at: int) -> int:
    """The last place up to `at` that is not inside a character of several code points; `at` itself
    when the character is the first one."""
    found = at
    while 0 < found < len(text) and _continues(text, found):
        found -= 1
    return found or at


def _next_boundary(text: str, at: int) -> int:
    return max(1, min(at, len(text)))


def _continues(text: str, at: int) -> bool:
    letter, before = text[at], text[at - 1]
    if before == _JOINER or letter == _JOINER:
        return True
    if unicodedata.category(letter) in ("Mn", "Me", "Mc", "Cf") or "🏻" <= letter <= "🏿":
        return True
    if not _is_flag(letter) or not _is_flag(before):
        return False
    start = at
    while start and _is_flag(text[start - 1]):
        start -= 1
    return (at - start) % 2 == 1


def _is_flag(letter: str) -> bool:
    return "🇦" <= letter <= "🇿"
