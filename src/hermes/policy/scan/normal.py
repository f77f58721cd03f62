"""Brings a text into the form in which it is read: without disguise, with its lines in place."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator

LONGEST = 65_536
# Letters of other scripts and signs that look like Latin letters.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмпгтвьԛԝүәıɩοαενικτυχβρσηωɑɛⅼ" + "АВЕКМНОРСТХІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdghkmnrtbbqwyeiioaevikruxbpsnwael" + "abekmhopctxisjabezhikmnoptyx",
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
_SPELLED = re.compile(r"\b(?:\w[ .\-_*·•]){2,}\w\b")
_RUN_TOGETHER = re.compile(
    r"(ignore|disregard|forget|reveal)(all|your|the|any|)(?:the)?(previous|prior|system)"
)
# Letters, digits that stand for letters, and what may stand between spelled letters.
_CLASSES = bytes(
    48 if byte in b"013457@$!" else 97 if chr(byte).isalnum() else 32 if byte in b" .-_" else 120
    for byte in range(256)
)
_LEET = bytes.maketrans(b"013457@$!", b"oieastasi")
# Nobody writes these with digits in them without a reason.
_TELLING = (b"ignore", b"disregard", b"previous", b"instructions", b"system prompt", b"bypass")
_RUNS = bytes(97 if (chr(b).isalnum() and b < 128) or b in b"+/_-=" else 32 for b in range(256))
_RUN = b"a" * 24
_MOST_RUNS = 50
_ESCAPES = re.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|&#?\w{1,8};")
_READABLE = re.compile(r"[\x20-\x7e\n\t]+")


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


def disguises(text: str, plain: str) -> Iterator[tuple[str, str]]:
    """Other readings of the text: a name of the disguise, and what a model may read behind it.
    Lines stay in place where that is possible."""
    marks = plain.encode("latin-1", "replace").translate(_CLASSES)
    if b"a a a a" in marks or b"a  a  a" in marks:
        read = _SPELLED.sub(lambda match: re.sub(r"[\W_]", "", match[0]), plain)
        # Without a longer space between its words the whole sentence becomes one.
        yield "spelled_out", _RUN_TOGETHER.sub(r"\1 \2 \3 ", read)
    if b"a0a" in marks or b" 0a" in marks:
        data = plain.encode("latin-1", "replace")
        spelt = data.translate(_LEET)
        if any(spelt.count(word) > data.count(word) for word in _TELLING):
            yield "digits_for_letters", spelt.decode("latin-1")
    if any(sign in text for sign in ("\\u", "\\x", "%", "&")) and _ESCAPES.search(text):
        yield "escaped", folded(_unescaped(text))
    if "erongi" in plain or "snoitcurtsni" in plain:
        yield "reversed", plain[::-1]
    if "vtaber" in plain or "vafgehpgvbaf" in plain:
        yield "rot13", plain.translate(_ROT13)
    if not text.isascii() and (tags := _tags(text)):
        yield "hidden_tags", folded(tags)
    yield from _decoded(text)


_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == "&":
            return html.unescape(found)
        return chr(int(found.lstrip("\\ux%"), 16) if found.lstrip("\\ux%") else 0)

    return _ESCAPES.sub(one, text)


def _tags(text: str) -> str:
    """What is written in tag characters, which no screen shows and every model can read."""
    return "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E)


def _decoded(text: str) -> Iterator[tuple[str, str]]:
    for packed, start in _packed(text.encode("latin-1", "replace")):
        try:
            raw = base64.b64decode(packed + b"=" * (-len(packed) % 4), altchars=b"-_")
            words = raw.decode("ascii")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            continue
        if _READABLE.fullmatch(words) and " " in words:
            # As many lines before it as in the text, so that findings name the right one.
            yield "base64", "\n" * text.count("\n", 0, start) + folded(words)


def _packed(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Long runs of the letters of base64, and where they begin."""
    marks = data.translate(_RUNS)
    at = marks.find(_RUN)
    for _ in range(_MOST_RUNS):
        if at < 0:
            return
        end = marks.find(b" ", at)
        end = end if end >= 0 else len(marks)
        yield data[at:end].replace(b"+", b"-").replace(b"/", b"_").rstrip(b"="), at
        at = marks.find(_RUN, end)
