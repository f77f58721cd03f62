"""Finds secrets behind characters that a screen does not show: colour codes, zero-width spaces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from hermes.policy.patterns import regex
from hermes.policy.redact.spans import SecretSpan

_HIDDEN = regex("\x1b\\[[0-9;:]{0,32}[A-Za-z]|[\u00ad\u200b-\u200f\u2060\ufeff]+")


def has_hidden(text: str) -> bool:
    return ("\x1b[" in text or not text.isascii()) and _HIDDEN.search(text) is not None


def find_without_hidden(
    text: str, find: Callable[[str], Iterable[SecretSpan]]
) -> Iterator[SecretSpan]:
    """Search the text without its hidden characters, and yield the spans in the text itself."""
    gaps = [match.span() for match in _HIDDEN.finditer(text)]
    removed = list(accumulate(end - start for start, end in gaps))
    # Where each gap is in the shortened text.
    places = [start - before for (start, _), before in zip(gaps, [0, *removed], strict=False)]
    for span in find(_HIDDEN.sub("", text)):
        start, last = (
            at + ([0, *removed])[bisect_right(places, at)] for at in (span.start, span.end - 1)
        )
        yield SecretSpan(start=start, end=last + 1, kind=span.kind)
