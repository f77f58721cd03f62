"""Brings a text into the form in which it is read: without disguise, with its lines in place."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 65_536
# Letters of other scripts and signs that look like Latin letters.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмпгтвьԛԝүәıɩοαενικτυχβρσηωɑɛⅼи" + "АВЕКМНОРСТХІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdghkmnrtbbqwyeiioaevikruxbpsnwaeln" + "abekmhopctxisjabezhikmnoptyx",
)
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff]")
_OTHER_SCRIPT = re.compile("[\u0250-\u02af\u0370-\u052f\u2170-\u217f]")
_MARKS = re.compile(r"[\u0300-\u036f\u0489]")
# Emphasis falls away; what stands in backticks stays in quotation marks.
_EMPHASIS = (
    *(("*", ""), ("~~", ""), ("`", '"'), (" _", " "), ("_ ", " "), ("\n_", "\n"), ("_\n", "\n")),
    *(("_.", "."), ("_,", ","), ("(_", "("), ("_)", ")")),
)


def folded(text: str) -> str:
    """The same text in small plain letters and without emphasis. Lines stay lines."""
    plain = text.lower()
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).lower()
        if _ACCENTED.search(plain):
            plain = _MARKS.sub("", unicodedata.normalize("NFD", plain))
        if _OTHER_SCRIPT.search(plain):
            plain = plain.translate(_LOOKALIKES)
    for sign, instead in _EMPHASIS:
        plain = plain.replace(sign, instead)
    return plain


def foreign(text: str) -> str:
    """In small letters, but with the letters of its own script."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", text)).lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFD", plain))
    return unicodedata.normalize("NFC", bare)
