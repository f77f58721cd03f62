"""Tells words that name another machine from those that name this one."""

from __future__ import annotations

from hermes.policy.patterns import regex

HOST = regex(
    r"^[a-z][a-z0-9+.-]*://|^[\w.-]+@[\w.-]+(:|$)|^\d{1,3}(\.\d{1,3}){3}(:\d+|/\d+|$)"
    r"|^[\w-]+(\.[\w-]+)+:\d+(/|$)|^//|^\\\\"
)
NEAR = regex(
    r"^(?:unix|npipe|fd|file)://|^(?:[a-z+]+://)?(?:[^/@]*@)?(?:localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0)(?=[:/?#]|$)"
)


def far(word: str) -> bool:
    """A word that names another machine."""
    return bool(HOST.search(word)) and not NEAR.match(word)
