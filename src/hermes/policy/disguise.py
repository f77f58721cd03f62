"""Finds text that looks different from what it does: look-alike letters, hidden signs."""

from __future__ import annotations

import unicodedata

from hermes.policy.patterns import regex

# Letters of other scripts that look like these.
LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмпгтвьАВЕКМНОРСТХІЅЈαορνικτυχβ" + "ⅼⅿⅾⅽⅰⅴⅹℓ‐‑‒–—−⁄∕‚‘’",
    "aeopcyxijsdghkmnrtbbABEKMHOPCTXISJaopviktuxb" + "lmdcivxl------//,''",
)
# Nothing to see, but the shell reads it; or it turns the order of what is seen.
HIDDEN = regex(
    "[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffc\U0001bca0-\U0001bca3\U000e0000-\U000e0fff]"
)
CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def folded(name: str) -> str:
    """The plain name that this one looks like, which is itself for almost all."""
    if name.isascii():
        return name
    plain = unicodedata.normalize("NFKC", HIDDEN.sub("", name)).translate(LOOKALIKES)
    return plain if plain.isascii() else name


def disguised(script: str) -> str:
    """Why the text is not what a person sees, or nothing."""
    if CONTROL.search(script):
        return "It holds control characters, which can hide what it does on a screen."
    if not script.isascii() and HIDDEN.search(script):
        return "It holds invisible characters, which can hide what it does on a screen."
    return ""
