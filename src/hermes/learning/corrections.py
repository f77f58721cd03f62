"""Detects that a message corrects the previous turn, by how it begins."""

from __future__ import annotations

import re

# Longer texts are new tasks.
MOST_CHARS = 600
_BEGINS = re.compile(
    r"""(?xi) ^ \W*
    (?: no \b (?! \s+ (?:problem|worries|rush|hurry|need)) | nope | nah \b | wrong | incorrect
      | stop \b | don'?t \b | do \s not \b | never \b | (?:not \s (?:that|like|what|so|quite|right))
      | (?:that|this|it) (?:'s|\s is|\s was|\s isn'?t|\s wasn'?t) \s* (?:not|wrong|incorrect|right)
      | (?:i \s (?:said|meant|told \s you|asked (?:\s for)?|wanted|did\s?n'?t)) \b
      | you \s (?:should \s have|should\s?n'?t|forgot|missed|broke|were \s supposed|did\s?n'?t)
      | actually \b | instead \b | please \s (?:don'?t|stop|always|never) | always \b
      | next \s time | from \s now \s on
      | nein \b | falsch | nicht \s so | non \b | pas \s comme | ce \s n'est \s pas | mal \b
      | eso \s no | no \s es
    )"""
)
_HOLDS = re.compile(
    r"(?i)\b(?:not what i (?:asked|wanted|meant)|you (?:should have|forgot to)|that(?:'s| is) wrong"
    r"|instead of what you|use \S+ instead|rather than what)\b"
)


def is_correction(text: str) -> bool:
    """Returns whether the text corrects the turn before. A false positive costs one review; a
    false negative loses a lesson."""
    if not text or len(text) > MOST_CHARS:
        return False
    return bool(_BEGINS.search(text) or _HOLDS.search(text))
