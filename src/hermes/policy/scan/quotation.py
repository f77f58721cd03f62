"""Decides whether a text talks about an injection instead of addressing a model."""

from __future__ import annotations

import re

from hermes.policy.patterns import regex
from hermes.policy.scan.tables import TABLES

_SPEAKER, _QUOTING, _REPORTING, _ATTACK, _SPOKEN_AFTER = (
    regex(TABLES.expressions[name])
    for name in ("speakers", "quoting", "reporting", "attack", "spoken_after")
)
# Lists, tables and block quotes: the text around them says what they are.
_SET_APART = regex(r"[ \t]*(?:>|\||[-+] |\d+[.)] )")
_OPENERS = "\"'`“‘«‹「『（(["
_CLOSERS = "\"'`”’»›」』）)]"
_SENTENCE = regex(r"[.!?;。！？]\s|\n\s*\n|\n\s*(?:[-*#>|]|\d+\.)\s")
# The value of a field is not a quotation.
_VALUE = regex(r"[\"'\w]\s{0,2}[:=]\s{0,2}[\"'`][^\"'`]*\Z")


def is_reported(text: str, start: int) -> bool:
    """Whether the sentence forbids or reports what begins at `start`."""
    sentence = _SENTENCE.split(text[max(0, start - 280) : start])[-1]
    return _REPORTING.search(sentence) is not None or _SPEAKER.search(sentence) is not None


def is_quotation(text: str, start: int, end: int) -> bool:
    """Whether the words from `start` to `end` are reported, quoted as an example, or forbidden."""
    if text[end - 1 : end] in _CLOSERS:
        end -= 1
    before = text[max(0, start - 280) : start]
    breaks = [match.end() for match in _SENTENCE.finditer(before)]
    sentence = before[breaks[-1] :] if breaks else before
    if _REPORTING.search(sentence):
        return True
    reported = _SPEAKER.search(sentence) is not None
    if _is_quoted(text, start, end):
        wider = before[breaks[-2] :] if len(breaks) > 1 else before
        near = _SPEAKER.search(wider) or _QUOTING.search(sentence)
        after = _SENTENCE.split(text[end : end + 160], maxsplit=1)[0]
        if reported or near is not None or _SPOKEN_AFTER.search(after):
            return True
    return reported or _is_example(text, start, end)


def _is_example(text: str, start: int, end: int) -> bool:
    """Whether the line is a list item, table row or block quote in a text about attacks."""
    line = text.rfind("\n", 0, start) + 1
    if not _SET_APART.match(text, line):
        return False
    return _ATTACK.search(text, max(0, line - 240), line) is not None or (
        text[line:].lstrip().startswith(">") and _ATTACK.search(text, end, end + 160) is not None
    )


def _is_quoted(text: str, start: int, end: int) -> bool:
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    before = text[line_start:start]
    if _VALUE.search(before):
        return False
    after = text[end : line_end if line_end >= 0 else len(text)]
    for opener, closer in zip(_OPENERS[:9], _CLOSERS[:9], strict=True):
        if opener == "'":
            inside = re.search(r"(?:^|[\s(\[])'[^']*\Z", before) is not None and "'" in after
        elif opener == closer:
            inside = before.count(opener) % 2 == 1 and closer in after
        else:
            inside = before.rfind(opener) > before.rfind(closer) and closer in after
        if inside:
            return True
    return "|" in before and "|" in after
