"""How much of an unfinished text is sure to stay as it is, whatever is written after it."""

from __future__ import annotations

import re

# What a mark and its partner may enclose for this to be decided: anything but further marks.
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
_MARKS = re.compile(r"[*_`~\[\\<!]")


def stable_part(text: str) -> str:
    """The beginning of the text in which every mark has found its partner or cannot have one, so
    that taking the marks away gives the beginning of what it will give in the end."""
    at = 0
    while found := _MARKS.search(text, at):
        at = found.start()
        end = _decided(text, at)
        # What comes next may still change how the end is read.
        if end is None or end >= len(text):
            return text[:at]
        at = end
    return text


def _decided(text: str, at: int) -> int | None:
    """Where that which begins with this mark ends, None while it cannot be told."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if not after:
        return None
    if _is_bare(text[at], before, after):
        return at + 1
    for pattern in _WHOLE:
        if whole := pattern.match(text, at):
            # Another mark right behind it may turn into something that changes how it is read.
            return None if text[whole.end() : whole.end() + 1] in _ALL_MARKS else whole.end()
    return None


def _is_bare(mark: str, before: str, after: str) -> bool:
    """Whether the mark is an ordinary character where it stands."""
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
