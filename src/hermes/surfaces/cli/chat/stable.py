"""The prefix of streamed Markdown that no further text can change.

Parsing each delta with markdown-it-py costs twice as much, and its inline tokens carry no source
positions, so this is decided by patterns.
"""

from __future__ import annotations

import re

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
    inside_word = before.isalnum() or before == "_"
    match mark:
        case "_":
            return (inside_word or after.isspace()) and after != "_"
        case "*":
            return (inside_word or after.isspace()) and after != "*"
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
