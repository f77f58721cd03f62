"""A fast check that a text is plain words and cannot contain a secret by format or name."""

from __future__ import annotations

from hermes.policy.patterns import regex

LONGEST = 4_000
# Short words and numbers with ordinary punctuation. Longer runs and mixed letters and digits need
# the full search.
_PLAIN = regex(
    r"[\s.,;:!?'\"()/~`*…–—’“”-]*+"
    r"(?:(?:[^\W\d_]{1,14}+\d{0,4}+|\d{1,4}+[^\W\d_]{0,2}+)(?:[\s.,;:!?'\"()/~`*…–—’“”-]++|\Z))*+"
)
# Any word may be a secret after one of these.
_NAMING = (
    *("key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie", "bearer", "basic"),
    *("login", "identified", "private", "kennwort", "geheim", "contrase", "clave", "senha"),
    *("phrase", "mnemonic", "wallet", "getconnection", "variable"),
    *("zugang", "identifiant", "/p:"),
    *("parole", "motdepasse", "密", "пароль", "://", "---"),
)
_NAMING_ALONE = regex(r"(?:pin|\bsk)\b|(?<!\S)--?\w|:\d{2,5}:[^\s:]+:[^\s:]+:")


def is_plain(text: str) -> bool:
    """Whether the text cannot contain a secret by format or name. Known values are not covered:
    they may look like words."""
    if len(text) > LONGEST or _PLAIN.fullmatch(text) is None:
        return False
    low = text.casefold()
    return not any(map(low.__contains__, _NAMING)) and _NAMING_ALONE.search(low) is None
