"""Where a passage stands: in quotation marks, in a text about something."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

_QUOTES = '"“”«»„「」『』'
# A text in which one of these stands elsewhere is rather about orders than one.
_TOPICS = re.compile(
    r"\b(?:attack|inject|jailbreak|red[- ]team|adversar|malicious|phish|payload|exploit|malware"
    r"|untrusted|scam|spam|poison|fraud|threat|vulnerab|said|whisper|novel|chapter|story|poem"
    r"|scene|quiz|blog|thread|lecture|paper|talk|exampl|test|report|training|course|guide|histor"
    r"|game|filter|detect|block|refus|prevent|defen|polic|never|asked|told|tried|audit|bug:|changelog"
    r"|assert|angriff|angreif|sicherheit|attaqu|securite|ataque|seguridad|atacante|attacc|sicurezza"
    r"|aanval|atak|атак|безопасн|безпек|злоумышл|saldiri|guvenlik)|攻|安全|注入|セキュリティ|공격|보안|هجوم|حقن|हमल"
)


class Setting:
    def __init__(self, plain: str) -> None:
        self._plain = plain

    @cached_property
    def _topics(self) -> Counter[str]:
        return Counter(_TOPICS.findall(self._plain))

    def features(self, start: int, end: int) -> Iterator[str]:
        """What is special about the place of the passage from `start` to `end`."""
        passage = self._plain[start:end]
        if sum(map(passage.count, _QUOTES)) > 1:
            yield "q:pair"
        line = self._plain.rfind("\n", 0, start) + 1
        if self._plain.count('"', line, start) % 2:
            yield "q:in"
        if len(self._plain) - len(passage) < 30:
            yield "d:alone"
        own = Counter(_TOPICS.findall(passage))
        yield from ("d:" + topic for topic, count in self._topics.items() if count > own[topic])
