"""Keys for the second step of signing in, which people write in groups."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes.policy.redact.page import Page
from hermes.policy.redact.spans import Span

# Words of which one stands shortly before such a key.
_STEPS = (b"2fa", b"otp", b"authenticator", b"two-factor", b"two factor", b"mfa", b"setup key")
_KEY = re.compile(
    r"[^\n]{0,100}?(?:[:=]|\bis\b|\bkey\b|\bsecret\b|\bcode\b|\bseed\b|\n)[\s\"'`*(]{1,6}"
    r"(?P<secret>(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4}|(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}"
    r"|[A-Z2-7]{16,64})(?![\w-])"
)


def second_steps(page: Page) -> Iterator[Span]:
    for word in _STEPS:
        for at in page.places(word):
            match = _KEY.match(page.text, at + len(word) - 1)
            if match and _is_key(match["secret"]):
                yield Span(start=match.start("secret"), end=match.end("secret"), kind="otp_key")


def _is_key(secret: str) -> bool:
    """No row of words has digits in it."""
    return any(letter.isdigit() for letter in secret) and any(map(str.isalpha, secret))
