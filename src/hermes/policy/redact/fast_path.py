"""Tells at a glance that a text is plain words, in which no form of secret can be."""

from __future__ import annotations

import re

LONGEST = 4_000
# Short words and short numbers, with ordinary signs between them. What is longer, or mixes letters
# and digits more than a word with a number behind it does, deserves a proper look.
_PLAIN = re.compile(
    r"[\s.,;:!?'\"()/~`*…–—’“”-]*+"
    r"(?:(?:[^\W\d_]{1,14}+\d{0,4}+|\d{1,4}+[^\W\d_]{0,2}+)(?:[\s.,;:!?'\"()/~`*…–—’“”-]++|\Z))*+"
)
# After one of these any word may be a secret.
_NAMING = (
    *("key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie", "bearer", "basic"),
    *("login", "identified", "private", "kennwort", "geheim", "contrase", "clave", "senha"),
    *("phrase", "mnemonic", "wallet", "getconnection", "variable"),
    *("zugang", "identifiant", "/p:"),
    *("parole", "motdepasse", "密", "пароль", "://", "---"),
)
_NAMING_ALONE = re.compile(r"(?:pin|\bsk)\b|(?<!\S)--?\w|:\d{2,5}:[^\s:]+:[^\s:]+:")


def is_plain(text: str) -> bool:
    """No secret that could be told by its form or its name is in it. Says nothing about values
    that are known to be secret: those may look like words."""
    if len(text) > LONGEST or _PLAIN.fullmatch(text) is None:
        return False
    low = text.casefold()
    return not any(map(low.__contains__, _NAMING)) and _NAMING_ALONE.search(low) is None
