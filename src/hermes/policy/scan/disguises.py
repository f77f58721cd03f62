"""Finds hidden characters, and undoes disguises such as encodings and spelled-out words."""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator

from hermes.policy.scan.normal import alphabet, fold, is_astral

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\U000e0100-\U000e01ef]"
)
_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Joiners that some scripts and emoji need.
_JOINERS = frozenset("\u200c\u200d")
_PADDING = re.compile(r"\S[^\S\n]{60,}[^\s|]|\n{60,}\S")
_ESCAPE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def find_hidden(text: str) -> Iterator[tuple[int, str, str]]:
    """Position, id and weight ("strong", "weak") of hidden characters; ignores an initial BOM."""
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
    # Typesetting programs leave soft hyphens behind, and folding removes them.
    if letter == "\u00ad":
        return "weak"
    if letter in _BIDI and any("\u0590" <= each <= "\u08ff" for each in text):
        return "weak"
    return "strong"


_SPELLED = re.compile(r"\b(?:\w[ .\-_*·•]){2,}\w\b")
# Letters, digits used as letters, and separators of spelled-out letters.
_CLASSES = bytes(
    48 if byte in b"013457@$!" else 97 if chr(byte).isalnum() else 32 if byte in b" .-_" else 120
    for byte in range(256)
)
_LEET = bytes.maketrans(b"013457@$!", b"oieastasi")
# Words that have no innocent spelling with digits or gaps.
_TELLING = (
    *(b"ignore", b"disregard", b"forget", b"previous", b"instructions", b"prompt", b"bypass"),
    *(b"password", b"secret", b"reveal", b"execute", b"rules"),
)
_WORDS = {
    *("ignore", "disregard", "forget", "override", "bypass", "all", "any", "the", "your", "my"),
    *("previous", "prior", "above", "earlier", "system", "safety", "instructions", "instruction"),
    *("rules", "prompt", "guidelines", "directives", "and", "then", "reveal", "print", "show"),
    *("send", "execute", "run", "delete", "obey", "me", "to", "of", "user", "password", "secret"),
    *("passwords", "secrets", "keys", "key", "api", "files", "everything", "you", "are", "now"),
}
_TORN = re.compile("(?:" + "|".join(sorted(_WORDS, key=len, reverse=True)) + ")")
_PAIRS = (b"ignoreall", b"ignoreprevious", b"ignoreyour", b"ignorethe", b"disregardall",
          b"disregardthe", b"disregardyour", b"disregardprevious", b"forgetall", b"forgetyour",
          b"forgetprevious", b"previousinstructions", b"allinstructions", b"systemprompt",
          b"yourinstructions", b"previousrules")  # fmt: skip
_NOT_LETTERS = bytes(byte for byte in range(256) if not (chr(byte).isalpha() and byte < 128))
_RUNS = bytes(97 if (chr(b).isalnum() and b < 128) or b in b"+/_-=" else 32 for b in range(256))
_RUN = b"a" * 24
_MOST_RUNS = 50
_ESCAPES = re.compile(
    r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}"
    r"|&(?!(?:amp|lt|gt|quot|apos);)#?\w{1,8};"
)
_READABLE = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f]+")
_LETTER = "abcdefghijklmnopqrstuvwxyz"
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{24,}|(?:[0-9a-fA-F]{2}[ :,]){11,}[0-9a-fA-F]{2}")
_BITS = re.compile(r"(?:[01]{8}[ ,]?){8,}")
_CODES = re.compile(r"(?:\d{2,3}(?:, ?| )){11,}\d{2,3}")
_TURNED = (b"erongi", b"snoitcurtsni", b"drager", b"tegrof", b"tpmorp", b"drowssap", b"stercels",
           b"laever", b" eht ", b" dna ", b"etucexe")  # fmt: skip


def disguises(text: str, plain: str) -> Iterator[tuple[str, str]]:
    """The name of each disguise found, and the text behind it, with lines in place if possible."""
    data = plain.encode("latin-1", "replace")
    marks = data.translate(_CLASSES)
    if b"a a a a" in marks or b"a  a  a" in marks:
        # Without wider gaps between words, the whole sentence becomes one word.
        yield "spelled_out", _only(plain, lambda at: _spelled_out(marks, at), _together)
    if b"a0a" in marks or b" 0a" in marks:
        spelt = data.translate(_LEET)
        if any(word in spelt and spelt.count(word) > data.count(word) for word in _TELLING):
            yield "digits_for_letters", _replace_digits(plain, spelt.decode("latin-1"))
    yield from _torn(data)
    if any(sign in text for sign in ("\\u", "\\x", "%", "&")) and _ESCAPES.search(text):
        yield (
            "escaped",
            _only(text, lambda at: _first(_ESCAPES, text, at), lambda line: fold(_unescape(line))),
        )
    if sum(word in data for word in _TURNED) > 1:
        yield (
            "reversed",
            _replace_digits(plain, "\n".join(line[::-1] for line in plain.split("\n"))),
        )
    words = _EVERY_SHIFTED.intersection(plain.split())
    for shift, turned in _SHIFTED.items() if words else ():
        if len(words & turned) > 1:
            yield f"rot{26 - shift}", _replace_digits(plain, plain.translate(_ROTATIONS[shift]))
    if is_astral(text) and (tags := _tags(text)):
        yield "hidden_tags", fold(tags)
    yield from _decode_codes(text)


_ROTATIONS = {
    shift: str.maketrans(_LETTER[shift:] + _LETTER[:shift], _LETTER) for shift in range(1, 26)
}
_SHIFTED = {
    shift: frozenset(
        word.translate(str.maketrans(_LETTER, _LETTER[shift:] + _LETTER[:shift]))
        for word in ("ignore", "disregard", "instructions", "previous", "your", "and", "the", "all")
    )
    for shift in range(1, 26)
}


_EVERY_SHIFTED = frozenset(word for words in _SHIFTED.values() for word in words)


def _only(text: str, place: Callable[[int], int], reading: Callable[[str], str]) -> str:
    """Only the lines that `place` finds, decoded, at their line numbers."""
    found: list[str] = []
    done, at = 0, place(0)
    while at >= 0:
        start = text.rfind("\n", done, at) + 1 or done
        end = text.find("\n", at)
        end = end if end >= 0 else len(text)
        found += ["\n" * text.count("\n", done, start), reading(text[start:end])]
        done, at = end, place(end)
    found.append("\n" * text.count("\n", done))
    return "".join(found)


def _spelled_out(marks: bytes, start: int) -> int:
    """Runs of single letters."""
    found = [at for sign in (b"a a a a", b"a  a  a") if (at := marks.find(sign, start)) >= 0]
    return min(found, default=-1)


def _first(expression: re.Pattern[str], text: str, start: int) -> int:
    match = expression.search(text, start)
    return match.start() if match else -1


def _replace_digits(plain: str, reading: str) -> str:
    """Only the changed lines, at their line numbers."""
    before, after = plain.split("\n"), reading.split("\n")
    if len(before) != len(after):
        return reading
    return "\n".join(b if a != b else "" for a, b in zip(before, after, strict=True))


def _together(line: str) -> str:
    return _apart(_SPELLED.sub(lambda match: re.sub(r"[\W_]", "", match[0]), line))


def _apart(text: str) -> str:
    """Splits words that were run together."""
    return re.sub(
        r"[a-z]{12,}",
        lambda run: " ".join(_TORN.findall(run[0])) if _is_run(run[0]) else run[0],
        text,
    )


def _is_run(letters: str) -> bool:
    words = _TORN.findall(letters)
    return len(words) > 2 and sum(map(len, words)) >= len(letters) * 0.8


def _torn(data: bytes) -> Iterator[tuple[str, str]]:
    """Words with spaces or punctuation inside: known words appear only after removing it."""
    letters = data.translate(None, _NOT_LETTERS)
    for pair in _PAIRS:
        at = letters.find(pair)
        if at >= 0 and letters.count(pair) > _as_written(data, pair):
            yield "torn_words", _apart(letters[at : at + 200].decode("latin-1"))
            return


def _as_written(data: bytes, pair: bytes) -> int:
    first = next(word.encode() for word in _FIRST if pair.startswith(word.encode()))
    second = pair[len(first) :]
    return len(re.findall(first + rb"[^a-z]{1,3}" + second, data)) + data.count(pair)


_FIRST = ("ignore", "disregard", "forget", "previous", "all", "system", "your")


_TAGS = re.compile("[\U000e0020-\U000e007e]")


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == "&":
            return html.unescape(found)
        return chr(int(found.lstrip("\\ux%"), 16) if found.lstrip("\\ux%") else 0)

    return _ESCAPES.sub(one, text)


def _tags(text: str) -> str:
    """Text in tag characters, which screens do not show but models read."""
    return "".join(chr(ord(letter) - 0xE0000) for letter in _TAGS.findall(text))


def _decode_codes(text: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, start, words in _decode(text):
        # Keeps the line number.
        yield name, "\n" * text.count("\n", 0, start) + fold(words)
        if depth < 2:
            yield from _decode_codes(words, depth + 1)


def _decode(text: str) -> Iterator[tuple[str, int, str]]:
    data = text.encode("latin-1", "replace")
    for packed, start in _unpack(data):
        for name, decode in (("base64", _base64), ("base32", _base32)):
            if words := _readable(decode, packed):
                yield name, start, words
    for name, signs, shortest, expression, decode in _NUMBERS:
        marks = data.translate(signs)
        at = marks.find(b"1" * shortest)
        for _ in range(_MOST_RUNS):
            if at < 0:
                break
            end = marks.find(b" ", at)
            end = end if end >= 0 else len(marks)
            for match in expression.finditer(text, at, end):
                if words := _readable(decode, match[0].encode()):
                    yield name, match.start(), words
            at = marks.find(b"1" * shortest, end)


def _signs(letters: bytes) -> bytes:
    return bytes(49 if byte in letters else 32 for byte in range(256))


def _readable(decode: Callable[[bytes], bytes], packed: bytes) -> str:
    try:
        raw = decode(packed)
        words = raw.decode("utf-16-le" if raw[1:8:2] == b"\0\0\0\0" else "utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
    spaced = " " in words or _RUN_ALONE.fullmatch(words)
    return words if _READABLE.fullmatch(words) and spaced else ""


_RUN_ALONE = re.compile(r"[A-Za-z0-9+/=]{40,}")


def _base64(packed: bytes) -> bytes:
    packed = packed.replace(b"+", b"-").replace(b"/", b"_").rstrip(b"=")
    return base64.b64decode(packed + b"=" * (-len(packed) % 4), altchars=b"-_")


def _base32(packed: bytes) -> bytes:
    packed = packed.rstrip(b"=")
    return base64.b32decode(packed + b"=" * (-len(packed) % 8))


def _hex(packed: bytes) -> bytes:
    digits = re.sub(rb"[ :,]|0x", b"", packed)
    return bytes.fromhex(digits[: len(digits) & ~1].decode())


def _bits(packed: bytes) -> bytes:
    digits = re.sub(rb"[ ,]", b"", packed)
    return bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits) - 7, 8))


def _codes(packed: bytes) -> bytes:
    return bytes(map(int, re.findall(rb"\d+", packed)))


# Character codes as numbers with separators, and the minimum run.
_NUMBERS = (
    ("hex", _signs(b"0123456789abcdefABCDEF"), 24, _HEX, _hex),
    ("hex", _signs(b"0123456789abcdefABCDEF :,"), 35, _HEX, _hex),
    ("bits", _signs(b"01 ,"), 64, _BITS, _bits),
    ("codes", _signs(b"0123456789 ,"), 35, _CODES, _codes),
)


def _unpack(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Long runs of base64 characters, with offsets."""
    marks = data.translate(_RUNS)
    at = marks.find(_RUN)
    for _ in range(_MOST_RUNS):
        if at < 0:
            return
        end = marks.find(b" ", at)
        end = end if end >= 0 else len(marks)
        yield data[at:end], at
        at = marks.find(_RUN, end)
