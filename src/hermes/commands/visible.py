"""Escapes untrusted text, so that it can neither control a terminal nor hide characters."""

from __future__ import annotations

import re
import unicodedata

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def sanitize(text: str) -> str:
    """For prose: keeps line breaks, expands tabs, escapes other control characters."""
    plain = text.replace("\r\n", "\n").expandtabs(4)
    return _CONTROLS.sub(_sign, plain)


def escape_invisible(text: str) -> str:
    """For approvals: escapes every invisible character."""
    return "".join(letter if _shows(letter) else _escape(letter) for letter in text)


def one_line(text: str, most: int = 0) -> str:
    """The text on one line, cut to `most` characters if given."""
    plain = " ".join(sanitize(text).split())
    return plain if not most or len(plain) <= most else plain[: most - 1] + "…"


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else ""


def _shows(letter: str) -> bool:
    if letter in "\n ":
        return True
    # Variation selectors and combining marks are printable, formatting characters are not.
    return letter.isprintable() and unicodedata.category(letter) != "Cf"


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter == "\t":
        return "\\t"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
