"""Where a passage stands: in quotation marks, in a text about something."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set as AbstractSet
from functools import cached_property

_QUOTES = '"“”«»„「」『』'
# A text in which a word with such a beginning stands elsewhere is rather about orders than one.
_TOPICS = tuple(
    """
    attack inject jailbreak adversar malicious phish payload exploit malware untrusted scam spam
    poison fraud threat vulnerab said whisper novel chapter story poem scene quiz blog thread
    lecture paper talk exampl test report training course guide histor game filter detect block
    refus prevent defen polic never asked told tried audit changelog assert angriff angreif
    sicherheit attaqu securite ataque seguridad atacante attacc sicurezza aanval atak saldiri
    guvenlik
    """.split()
)
_SPACED = ("атак", "безопасн", "безпек", "злоумышл")
_JOINED = ("攻", "安全", "注入", "セキュリティ", "공격", "보안", "هجوم", "حقن", "हमल")
_FOREIGN = re.compile(rf"\b(?:{'|'.join(_SPACED)})|{'|'.join(_JOINED)}")
_WORDS = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_MOST_KNOWN = 20_000


class _Topics(dict[str, str]):
    """What a word says a text is about, as far as words have been met; "" for most."""

    def __missing__(self, word: str) -> str:
        if len(self) > _MOST_KNOWN:
            self.clear()
        self[word] = next((topic for topic in _TOPICS if word.startswith(topic)), "")
        return self[word]


_topics = _Topics()


def topics(plain: str) -> Counter[str]:
    """How often a text names what it may be about."""
    spaced = plain.encode("latin-1", "replace").translate(_WORDS).decode("ascii")
    found = Counter(filter(None, map(_topics.__getitem__, spaced.split())))
    # An expression takes far longer to find nothing than a search for each of its words.
    if not plain.isascii() and any(word in plain for word in (*_SPACED, *_JOINED)):
        found.update(_FOREIGN.findall(plain))
    return found


class Setting:
    def __init__(self, plain: str) -> None:
        self._plain = plain

    @cached_property
    def _topics(self) -> Counter[str]:
        return topics(self._plain)

    def features(self, start: int, end: int) -> dict[str, AbstractSet[str | tuple[str, ...]]]:
        """What is special about the place of the passage from `start` to `end`."""
        passage = self._plain[start:end]
        quoted = set()
        if sum(map(passage.count, _QUOTES)) > 1:
            quoted.add("pair")
        line = self._plain.rfind("\n", 0, start) + 1
        if self._plain.count('"', line, start) % 2:
            quoted.add("in")
        own = topics(passage)
        around = {topic for topic, count in self._topics.items() if count > own[topic]}
        if len(self._plain) - len(passage) < 30:
            around.add("alone")
        return {"q": quoted, "d": around}
