"""How an effect that is allowed for ever is written down: word by word, but never with a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hermes.policy.patterns import regex

Mask = Callable[[str], str]
SEALED = regex(r"sealed:(?P<seal>[0-9a-f]{64}) (?P<shown>.*)", re.DOTALL)


def masked(text: str) -> str:
    """Without what looks like a secret."""
    from hermes.policy.redact.redactor import Redactor

    return Redactor().redact(text).text


def sealed(text: str, mask: Mask) -> str:
    """The text itself where nothing in it is secret; else how it looks without its secrets, and
    a seal by which the same text is known again."""
    shown = mask(text)
    return text if shown == text else f"sealed:{_seal(text, shown)} {shown}"


class Kept:
    """The effects that need no question any more."""

    def __init__(self, texts: Iterable[str], mask: Mask = masked) -> None:
        self._mask = mask
        self._plain: set[str] = set()
        self._seals: dict[str, set[str]] = {}
        for text in texts:
            if found := SEALED.fullmatch(text):
                self._seals.setdefault(found["shown"], set()).add(found["seal"])
            else:
                self._plain.add(text)

    def add(self, text: str) -> None:
        self._plain.add(text)

    def __contains__(self, text: str) -> bool:
        if text in self._plain:
            return True
        if not self._seals:
            return False
        # Sealing takes long, so only what looks the same is sealed.
        shown = self._mask(text)
        return shown in self._seals and _seal(text, shown) in self._seals[shown]


def _seal(text: str, shown: str) -> str:
    """Slow on purpose: whoever reads the settings should not find a short password by trying."""
    import hashlib

    salt = hashlib.sha256(shown.encode()).digest()
    return hashlib.scrypt(text.encode(), salt=salt, n=2**13, r=8, p=1, dklen=32).hex()
