"""Determines who says a message: by a name before the text, or by the role of a person who is
addressed by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SPEAKS = 1.5
_SPOKEN_OF = 0.8
_CALLED_SPEAKS = 1.5
_CALLS = 0.2
_LEAST_CALLS = 3
_MOSTLY = 0.8
_SHORTEST_NAME = 3

# A speaker written before the text: a name of one or two words.
_BEFORE_WORDS = re.compile(r"(\w+)(?: \w+)?: ")
_GREETING = r"hey|hi|hello|thanks|thank you|bye|dear|wow|yeah|yes|oh|congrats"


class Speakers:
    """The folded names that turn out to belong to speakers."""

    def __init__(self, names: Iterable[str]) -> None:
        self._calls = {name: _call(name) for name in names}
        self._callers: dict[str, str] = {}

    def hear(self, said: Iterable[tuple[str, str]]) -> None:
        """Learn from messages, each with its kind and folded text, who is addressed by name: the
        person that one side of a conversation addresses is the other side."""
        if not self._calls:
            return
        bare = [one for one in said if not _BEFORE_WORDS.match(one[1])]
        for name, pattern in self._calls.items():
            kinds = [kind for kind, folded in bare if name in folded and pattern.search(folded)]
            named = sum(name in folded for _, folded in bare)
            if len(kinds) < max(_LEAST_CALLS, named / 2):
                continue
            for kind in set(kinds):
                if kinds.count(kind) >= _MOSTLY * len(kinds):
                    self._callers[name] = kind

    def part(self, name: str, kind: str, folded: str, *, said: bool) -> float | None:
        """The weight of a message for a person's name: highest when that person wrote it. None when
        the speaker is unknown. `said` is whether the message contains the name."""
        if before := _BEFORE_WORDS.match(folded):
            if _is_short_for(name, before[1]):
                return _SPEAKS
            return _SPOKEN_OF if said else None
        if name in self._callers:
            return _CALLS if self._callers[name] == kind else _CALLED_SPEAKS
        return None


def _is_short_for(name: str, whole: str) -> bool:
    """Whether it is the same name or a short form of it."""
    return whole == name or (len(name) >= _SHORTEST_NAME and whole.startswith(name))


def _call(name: str) -> re.Pattern[str]:
    """The name between punctuation, or after a greeting, as when a person is addressed."""
    word = re.escape(name)
    return re.compile(rf"(?:^|[,.!?]\s*|\b(?:{_GREETING}) ){word}(?=[,.!?]|$)")
