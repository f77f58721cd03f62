"""Marks inside a line of Markdown: removed, or turned into styles."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

# Control characters mark where a style begins and ends. Sanitized text contains none of them, and
# unlike letters they do not change what the patterns below find next to them.
CODE, BOLD, ITALIC, STRIKE, LABEL, ADDRESS, END = "\x01\x02\x03\x04\x05\x06\x07"
STYLES = frozenset((CODE, BOLD, ITALIC, STRIKE, LABEL, ADDRESS))

_STYLE_MARKS = re.compile(r"[\x00-\x07]")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?[^`])\1(?!`)", re.DOTALL)
_KEPT = re.compile(r"\x00(\d+)\x00")
# Fast to look for: text without these characters has no marks.
_POSSIBLE = re.compile(r"[*_`~\[<\\]")


def _styled(style: str, group: int = 1) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{style}{found[group]}{END}"


def _link(label: str, address: str) -> str:
    if label == address:
        return f"{ADDRESS}{address}{END}"
    return f"{LABEL}{label}{END} ({ADDRESS}{address}{END})"


_MARKS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"!\[([^\]]*)\]\(\s*([^)\s]+)[^)]*\)"), lambda m: _link(m[1] or "picture", m[2])),
    (re.compile(r"\[([^\]]+)\]\(\s*([^)\s]+)[^)]*\)"), lambda m: _link(m[1], m[2])),
    (re.compile(r"<((?:https?|mailto):[^>\s]+)>"), _styled(ADDRESS)),
    (re.compile(r"(?<!\\)\*\*\*(?=\S)(.+?)(?<=\S)\*\*\*", re.DOTALL), _styled(BOLD)),
    (re.compile(r"(?<!\\)\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL), _styled(BOLD)),
    # One word between double underscores is more likely a Python name than bold.
    (
        re.compile(r"(?<![\w\\])__(?!\w+__)(?=\S)(.+?)(?<=\S)__(?!\w)", re.DOTALL),
        _styled(BOLD),
    ),
    (re.compile(r"(?<![\w\\*])\*(?=[^\s*])([^*]+?)(?<=\S)\*(?![\w*])", re.DOTALL), _styled(ITALIC)),
    (re.compile(r"(?<![\w\\_])_(?=[^\s_])([^_]+?)(?<=\S)_(?![\w_])", re.DOTALL), _styled(ITALIC)),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~", re.DOTALL), _styled(STRIKE)),
    (re.compile(r"\\([\\`*_{}\[\]()#+\-.!|~>])"), r"\1"),
)


def plain_words(text: str) -> str:
    """Removes emphasis and link marks; code spans stay as they are."""
    return _STYLE_MARKS.sub("", _mark(text, lambda span: span[0]))


def _mark(text: str, code_span: Callable[[re.Match[str]], str]) -> str:
    """The text with style marks instead of Markdown; `code_span` renders code spans."""
    plain = _STYLE_MARKS.sub("", text)
    if not _POSSIBLE.search(plain):
        return plain
    spans: list[str] = []

    def keep(span: re.Match[str]) -> str:
        spans.append(code_span(span))
        return f"\x00{len(spans) - 1}\x00"

    # Emphasis may span a code span, so code spans are replaced while marks are removed.
    plain = _CODE_SPAN.sub(keep, plain)
    for pattern, instead in _MARKS:
        plain = pattern.sub(instead, plain)
    return _KEPT.sub(lambda found: spans[int(found[1])], plain)


class StyledText(NamedTuple):
    """Plain text and its styles: from each offset in `starts`, those in `styles` apply."""

    text: str
    starts: tuple[int, ...] = ()
    styles: tuple[frozenset[str], ...] = ()

    def render(self, begin: int, end: int, paint: Callable[[str, frozenset[str]], str]) -> str:
        """A part of the text; `paint` applies styles."""
        if not self.starts:
            return self.text[begin:end]
        shown, at, number = "", begin, bisect_right(self.starts, begin) - 1
        while at < end:
            following = self.starts[number + 1] if number + 1 < len(self.starts) else end
            piece = self.text[at : min(end, following)]
            styles = self.styles[number] if number >= 0 else frozenset[str]()
            shown += paint(piece, styles) if styles else piece
            at, number = min(end, following), number + 1
        return shown


def plain_text(text: str) -> StyledText:
    """Stripped text, which has no styles."""
    return StyledText(plain_words(text))


def styled_text(text: str) -> StyledText:
    """Text whose marks became styles. Code spans lose their backticks."""
    marked = _mark(text, _code_content)
    if not _STYLE_MARKS.search(marked):
        return StyledText(marked)
    plain, starts, styles, active = "", list[int](), list[frozenset[str]](), list[str]()
    for piece in re.split(r"([\x01-\x07])", marked):
        if piece in STYLES:
            active.append(piece)
        elif piece != END:
            plain += piece
            continue
        elif active:
            active.pop()
        starts.append(len(plain))
        styles.append(frozenset(active))
    return StyledText(plain, tuple(starts), tuple(styles))


def _code_content(span: re.Match[str]) -> str:
    code = span[2]
    if code.startswith(" ") and code.endswith(" ") and code.strip():
        code = code[1:-1]
    return f"{CODE}{code}{END}"


# What a pair of marks may enclose to be decidable: anything but further marks.
_PLAIN = r"[^*_`~\[\]\\<!\s](?:[^*_`~\[\]\\<!]*[^*_`~\[\]\\<!\s])?"
_WHOLE = tuple(
    re.compile(pattern)
    for pattern in (
        r"(`+)(?!`)[^`]+\1(?!`)",
        rf"!?\[{_PLAIN}\]\([^()\s*_`~\\<!\[\]]+\)",
        rf"\[{_PLAIN}\](?!\()",
        r"<(?:https?|mailto):[^>\s*_`~\\]+>",
        rf"\*\*\*{_PLAIN}\*\*\*(?!\*)",
        rf"\*\*{_PLAIN}\*\*(?!\*)",
        rf"\*{_PLAIN}\*(?![\w*])",
        rf"__{_PLAIN}__(?![\w_])",
        rf"_{_PLAIN}_(?![\w_])",
        rf"~~{_PLAIN}~~(?!~)",
        r"\\[^*_`~\[\\<!]",
    )
)
_ALL_MARKS = tuple("*_`~[\\<!")
_MARK = re.compile(r"[*_`~\[\\<!]")


def settled_prefix(text: str) -> str:
    """The longest prefix in which every mark is closed or cannot be opened. Removing its marks
    gives a prefix of the final plain text."""
    at = 0
    while found := _MARK.search(text, at):
        at = found.start()
        end = _construct_end(text, at)
        # The next text may still change the meaning of the end.
        if end is None or end >= len(text):
            return text[:at]
        at = end
    return text


def _construct_end(text: str, at: int) -> int | None:
    """Where the construct that begins here ends; None while that is unknown."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not after:
        return None
    if _is_bare(text[at], before, after):
        return at + 1
    for pattern in _WHOLE:
        if whole := pattern.match(text, at):
            # Another mark directly behind it may change its meaning.
            return None if text[whole.end() : whole.end() + 1] in _ALL_MARKS else whole.end()
    return None


def _is_bare(mark: str, before: str, after: str) -> bool:
    """Whether the mark is an ordinary character here."""
    match mark:
        case "_" | "*":
            inside_word = before.isalnum() or before == "_"
            return (inside_word or after.isspace()) and after != mark
        case "~":
            return after != "~"
        case "!":
            return after != "["
        case "<":
            return after not in "hm"
        case "\\":
            return after.isalnum() or after.isspace()
        case _:
            return False
