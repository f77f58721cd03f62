"""Remembers the secrets that were found by format or name, and finds them again without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes.policy.redact.heuristics import looks_random
from hermes.policy.redact.spans import SearchText, SecretSpan

# Shorter values occur by chance, longer ones are files.
_SHORTEST, _LONGEST = 8, 512
_MOST = 200
_FIRST_LETTERS = 4


class FoundValues:
    """The secrets found so far, with their kinds; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self.count = 0

    def add(self, text: str, spans: Iterable[SecretSpan]) -> None:
        """Remember the secrets that cannot be ordinary words."""
        for span in spans:
            value = text[span.start : span.end]
            if value not in self._kinds and _is_distinctive(value, span.kind):
                if len(self._kinds) >= _MOST:
                    del self._kinds[next(iter(self._kinds))]
                self._kinds[value] = span.kind
                self.count += 1

    def find(self, page: SearchText) -> Iterator[SecretSpan]:
        for value, kind in list(self._kinds.items()):
            at = page.text.find(value)
            while at >= 0:
                end = at + len(value)
                if not (page.text[at - 1 : at].isalnum() or page.text[end : end + 1].isalnum()):
                    yield SecretSpan(start=at, end=end, kind=kind)
                at = page.text.find(value, end)

    def may_begin_in(self, text: str) -> bool:
        return any(value[:_FIRST_LETTERS] in text for value in self._kinds)


def _is_distinctive(value: str, kind: str) -> bool:
    if not _SHORTEST <= len(value) <= _LONGEST or any(map(str.isspace, value)):
        return False
    if looks_random(value, strict=True):
        return True
    cased = value != value.lower() and value != value.upper()
    return (cased or kind == "password") and looks_random(value, strict=False)
