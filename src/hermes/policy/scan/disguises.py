"""Finds hidden characters, and undoes disguises such as encodings and spelled-out words."""

from __future__ import annotations

import base64
import binascii
import html
import re
import string
from collections.abc import Callable, Iterable, Iterator
from typing import AnyStr

from hermes.policy.patterns import regex
from hermes.policy.scan.normal import alphabet, fold
from hermes.policy.scan.tables import TABLES

_INVISIBLE = regex(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\U000e0100-\U000e01ef]"
)
_SELECTOR = regex("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SELECTORS = regex("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Joiners that some scripts and emoji need.
_JOINERS = frozenset("\u200c\u200d")
_ZERO_WIDTH = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")
_ZERO_WIDTH_RUN = regex("[\u200b-\u200d\u2060\ufeff]{4}")
_SPLITS_WORD = regex("[A-Za-z][\u00ad\u200b-\u200d\u2060\ufeff]+[A-Za-z]")
_PADDING = regex(r"\S[^\S\n]{60,}[^\s|]|\n{60,}\S")
_ESCAPE = regex("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def find_hidden(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield position, id and weight ("strong", "weak", "faint") of hidden characters, except an
    initial BOM."""
    start = 1 if text.startswith("\ufeff") else 0
    seen: set[str] = set()
    letters = alphabet(text)
    if _INVISIBLE.search(letters) or _SELECTOR.search(letters):
        for match in _INVISIBLE.finditer(text, start):
            name = f"invisible_unicode_U+{ord(match[0]):04X}"
            if name not in seen and not _belongs(text, match.start()):
                seen.add(name)
                yield match.start(), name, _weight(match[0], text)
        for match in _SELECTORS.finditer(text):
            yield match.start(), "variation_selectors", "strong"
            break
    long = " " * 200 in text or "\t" * 60 in text or "\n" * 60 in text
    if long and (found := _PADDING.search(text)):
        yield found.start(), "hidden_by_padding", "weak"
    if (letters or not text.isprintable()) and (found := _ESCAPE.search(text)):
        yield found.start(), f"control_character_U+{ord(found[0]):04X}", "weak"


def _belongs(text: str, at: int) -> bool:
    """Whether the character is a normal part of a script or an emoji."""
    letter = text[at]
    before = text[at - 1] if at else ""
    after = text[at + 1] if at + 1 < len(text) else ""
    if letter == "\ufeff":
        # Concatenated files leave one at the beginning of a line.
        return before in ("", "\n")
    if letter in _JOINERS:
        return ord(before or "a") > 0x500 and (ord(after or "a") > 0x500 or not after.isalnum())
    if letter in "\u200e\u200f\u061c":
        # Texts that mix Arabic or Hebrew with Latin need direction marks.
        return any("\u0590" <= each <= "\u08ff" for each in text)
    return letter == "\u00ad" and before.isalpha() and after.isalpha() and text.count(letter) < 4


def _weight(letter: str, text: str) -> str:
    # Programs leave these behind, and folding removes them; many in a row can hide a text.
    if letter in _ZERO_WIDTH and not _ZERO_WIDTH_RUN.search(text):
        return "weak" if _SPLITS_WORD.search(text) else "faint"
    if letter in _BIDI and any("\u0590" <= each <= "\u08ff" for each in text):
        return "weak"
    return "strong"


_SPELLED = regex(r"\b(?:\w[ .\-_*·•]){2,}\w\b")
# Letters, digits used as letters, and separators of spelled-out letters.
_CLASSES = bytes(
    48 if byte in b"013457@$!" else 97 if chr(byte).isalnum() else 32 if byte in b" .-_" else 120
    for byte in range(256)
)
_LEET = bytes.maketrans(b"013457@$!", b"oieastasi")
_LISTS = {name: tuple(word.encode() for word in words) for name, words in TABLES.lists.items()}
_TORN = regex("|".join(sorted(TABLES.lists["torn"], key=len, reverse=True)))
_TORN_PAIRS: dict[bytes, list[bytes]] = {}
for _pair in _LISTS["torn_pairs"]:
    _first, _, _second = _pair.partition(b"+")
    _TORN_PAIRS.setdefault(_first, []).append(_second)
_NOT_LETTERS = bytes(byte for byte in range(256) if not (chr(byte).isalpha() and byte < 128))
_MOST_RUNS = 50
_ESCAPES = regex(
    r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}"
    r"|&(?!(?:amp|lt|gt|quot|apos);)#?\w{1,8};"
)
_READABLE = regex(r"[^\x00-\x08\x0b-\x1f\x7f]+")
_RUN_ALONE = regex(r"[A-Za-z0-9+/=]{40,}")
_TAGS = regex("[\U000e0020-\U000e007e]")
_SPELLED_OUT = regex(rb"a a a a|a  a  a")
_HEX = regex(r"(?:0x)?[0-9a-fA-F]{24,}|(?:[0-9a-fA-F]{2}[ :,]){11,}[0-9a-fA-F]{2}")
_BITS = regex(r"(?:[01]{8}[ ,]?){8,}")
_CODES = regex(r"(?:\d{2,3}(?:, ?| )){11,}\d{2,3}")


# Words by the rotation of the alphabet behind which they are found.
_ALPHABET = string.ascii_lowercase
_ROTATED = {
    shift: frozenset(
        word.translate(str.maketrans(_ALPHABET, _ALPHABET[shift:] + _ALPHABET[:shift])).encode()
        for word in TABLES.lists["shifted"]
    )
    for shift in range(1, 26)
}
_EVERY_ROTATED = frozenset().union(*_ROTATED.values())


def disguises(text: str, plain: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each disguise, and the decoded text, which keeps its line numbers if
    possible."""
    data = plain.encode("latin-1", "replace")
    marks = data.translate(_CLASSES)
    # The expression is much slower than a search for bytes.
    if b"a a a a" in marks or b"a  a  a" in marks:
        # Without wider gaps between words, the whole sentence becomes one word.
        yield "spelled_out", _only(plain, _SPELLED_OUT.finditer(marks), _together)
    # Each different word once: a third of a long text.
    tokens = set(data.split())
    words = b" ".join(tokens)
    if b"a0a" in marks or b" 0a" in marks:
        spelt = words.translate(_LEET)
        present = (word for word in _LISTS["telling"] if word in spelt)
        if any(spelt.count(word) > words.count(word) for word in present):
            read = data.translate(_LEET).decode("latin-1")
            yield "digits_for_letters", _changed_lines(plain, read)
    yield from _torn(data)
    if any(sign in text for sign in ("\\u", "\\x", "%", "&")):
        yield "escaped", _only(text, _ESCAPES.finditer(text), _unescape_line)
    if sum(word in words for word in _LISTS["turned"]) > 1:
        turned = "\n".join(line[::-1] for line in plain.split("\n"))
        yield "reversed", _changed_lines(plain, turned)
    turned_words = _EVERY_ROTATED & tokens
    for shift, rotated in _ROTATED.items() if turned_words else ():
        if len(turned_words & rotated) > 1:
            back = str.maketrans(_ALPHABET[shift:] + _ALPHABET[:shift], _ALPHABET)
            yield f"rot{26 - shift}", _changed_lines(plain, plain.translate(back))
    # Tag characters, which screens do not show but models read, take two units of UTF-16.
    astral = len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text)
    if astral and (tags := _TAGS.findall(text)):
        yield "hidden_tags", fold("".join(chr(ord(letter) - 0xE0000) for letter in tags))
    yield from _decode_codes(text)


def _only(text: str, places: Iterable[re.Match[AnyStr]], reading: Callable[[str], str]) -> str:
    """Return only the lines with these places, decoded, at their line numbers; "" without any."""
    found: list[str] = []
    done = 0
    for place in places:
        at = place.start()
        if at < done:
            continue
        start = text.rfind("\n", done, at) + 1 or done
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        found += ["\n" * text.count("\n", done, start), reading(text[start:end])]
        done = end
    return "".join(found) + "\n" * text.count("\n", done) if found else ""


def _changed_lines(plain: str, reading: str) -> str:
    """Return only the changed lines, at their line numbers."""
    before, after = plain.split("\n"), reading.split("\n")
    if len(before) != len(after):
        return reading
    return "\n".join(b if a != b else "" for a, b in zip(before, after, strict=True))


def _together(line: str) -> str:
    return _apart(_SPELLED.sub(lambda match: re.sub(r"[\W_]", "", match[0]), line))


def _apart(text: str) -> str:
    """Split words that were run together."""

    def split(run: re.Match[str]) -> str:
        words = _TORN.findall(run[0])
        torn = len(words) > 2 and sum(map(len, words)) >= len(run[0]) * 0.8
        return " ".join(words) if torn else run[0]

    return re.sub(r"[a-z]{12,}", split, text)


def _torn(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield words with spaces or punctuation inside: known words appear only after removing it."""
    letters = data.translate(None, _NOT_LETTERS)
    for first, seconds in _TORN_PAIRS.items():
        for second in seconds if first in letters else ():
            joined = first + second
            at = letters.find(joined)
            if at < 0:
                continue
            written = len(re.findall(first + rb"[^a-z]{1,3}" + second, data)) + data.count(joined)
            if letters.count(joined) > written:
                yield "torn_words", _apart(letters[at : at + 200].decode("latin-1"))
                return


def _unescape_line(text: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        if match[0][0] == "&":
            return html.unescape(match[0])
        return chr(int(match[0].lstrip("\\ux%") or "0", 16))

    return fold(_ESCAPES.sub(unescape, text))


def _decode_codes(text: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, start, decoded in _decode(text):
        # Keeps the line number.
        yield name, "\n" * text.count("\n", 0, start) + fold(decoded)
        if depth < 2:
            yield from _decode_codes(decoded, depth + 1)


def _decode(text: str) -> Iterator[tuple[str, int, str]]:
    data = text.encode("latin-1", "replace")
    for start, end in _runs(data, _PACKED, 24):
        for name, decode in (("base64", _base64), ("base32", _base32)):
            if decoded := _readable(decode, data[start:end]):
                yield name, start, decoded
    for name, signs, shortest, expression, decode in _NUMBERS:
        for start, end in _runs(data, signs, shortest):
            for match in expression.finditer(text, start, end):
                if decoded := _readable(decode, match[0].encode()):
                    yield name, match.start(), decoded


def _runs(data: bytes, signs: bytes, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield long runs of these signs, up to the limit that bounds the time."""
    marks = data.translate(signs)
    at = marks.find(b"1" * shortest)
    for _ in range(_MOST_RUNS):
        if at < 0:
            return
        end = marks.find(b" ", at)
        end = end if end >= 0 else len(marks)
        yield at, end
        at = marks.find(b"1" * shortest, end)


def _signs(letters: bytes) -> bytes:
    return bytes(49 if byte in letters else 32 for byte in range(256))


def _readable(decode: Callable[[bytes], bytes], packed: bytes) -> str:
    try:
        raw = decode(packed)
        decoded = raw.decode("utf-16-le" if raw[1:8:2] == b"\0\0\0\0" else "utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    spaced = " " in decoded or _RUN_ALONE.fullmatch(decoded)
    return decoded if _READABLE.fullmatch(decoded) and spaced else ""


def _base64(packed: bytes) -> bytes:
    packed = packed.replace(b"+", b"-").replace(b"/", b"_").rstrip(b"=")
    return base64.b64decode(packed + b"=" * (-len(packed) % 4), altchars=b"-_")


def _base32(packed: bytes) -> bytes:
    packed = packed.rstrip(b"=")
    if packed != packed.upper():
        return b""
    return base64.b32decode(packed + b"=" * (-len(packed) % 8))


def _hex(packed: bytes) -> bytes:
    digits = re.sub(rb"[ :,]|0x", b"", packed)
    return bytes.fromhex(digits[: len(digits) & ~1].decode())


def _bits(packed: bytes) -> bytes:
    digits = re.sub(rb"[ ,]", b"", packed)
    return bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) - 7, 8))


def _codes(packed: bytes) -> bytes:
    return bytes(map(int, re.findall(rb"\d+", packed)))


_PACKED = _signs(string.ascii_letters.encode() + b"0123456789+/_-=")
# Character codes as numbers with separators, and the minimum run.
_NUMBERS = (
    ("hex", _signs(b"0123456789abcdefABCDEF"), 24, _HEX, _hex),
    ("hex", _signs(b"0123456789abcdefABCDEF :,"), 35, _HEX, _hex),
    ("bits", _signs(b"01 ,"), 64, _BITS, _bits),
    ("codes", _signs(b"0123456789 ,"), 35, _CODES, _codes),
)
