"""Folds a text for matching: case, accents, look-alike letters, emphasis. Lines are kept."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

MAX_LENGTH = 65_536
# Letters of other scripts that look like Latin letters.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмпгтвьԛԝүәıɩοαενικτυχβρσηωɑɛⅼи" + "АВЕКМНОРСТХІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdghkmnrtbbqwyeiioaevikruxbpsnwaeln" + "abekmhopctxisjabezhikmnoptyx",
)
# Small capitals and letters in circles and squares.
_DRAWN = str.maketrans(
    "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡʏᴢ"
    + "".join(chr(first + at) for first in (0x1F150, 0x1F170) for at in range(26)),
    "abcdefghijklmnopqrstuvwyz" + "abcdefghijklmnopqrstuvwxyz" * 2,
)
_DRAWN_LETTER = re.compile(
    "[\u0262\u026a\u0274\u0280\u0299\u029c\u029f\u1d00-\u1d22\ua730\ua731\U0001f150-\U0001f189]"
)
_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Letters of two scripts in one word.
_MIXED = re.compile(
    "[a-z][\u0250-\u02af\u0370-\u052f\u2170-\u217f]|[\u0250-\u02af\u0370-\u052f\u2170-\u217f][a-z]"
)
_FOREIGN = re.compile("[\u0250-\u02af\u0370-\u052f\u2170-\u217f]")
_WIDE = re.compile("[\uff01-\uff5e]")
_MARKS = re.compile("[\u0300-\u036f\u0489]")
_UNUSUAL = re.compile(
    "|".join(each.pattern for each in (_HIDDEN, _WIDE, _DRAWN_LETTER, _MARKS)).replace("]|[", "")
)
_ASCII = bytes(range(128))
# If non-ASCII letters are this rare, only they are processed.
_BEYOND = re.compile("[^\x00-\x7f]+")
_RARE = 20
# Ranges of letters with accents.
_ACCENTED = ((0xC0, 0x24F), (0x386, 0x3CE), (0x400, 0x45F), (0x4C1, 0x4F9), (0x1E00, 0x1FFF))
# Emphasis is removed; backticks become quotation marks.
_EMPHASIS = (
    *(("*", ""), ("~~", ""), ("`", '"'), (" _", " "), ("_ ", " "), ("\n_", "\n"), ("_\n", "\n")),
    *(("_.", "."), ("_,", ","), ("(_", "("), ("_)", ")")),
)


def fold(text: str) -> str:
    """Lower case, without accents and emphasis."""
    return readings(text)[0]


def readings(text: str) -> tuple[str, str]:
    """The folded text, and the same without mapping look-alike letters to Latin."""
    own = own_letters(text)
    plain = own
    if _FOREIGN.search(alphabet(own)) and _MIXED.search(own):
        plain = own.translate(_LOOKALIKES)
    if plain is own:
        plain = own = _strip_emphasis(own)
        return plain, own
    return _strip_emphasis(plain), _strip_emphasis(own)


def _strip_emphasis(plain: str) -> str:
    for sign, instead in _EMPHASIS:
        if sign in plain:
            plain = plain.replace(sign, instead)
    return plain


def alphabet(text: str) -> str:
    """The distinct non-ASCII letters: searching these is much faster than searching the text."""
    if text.isascii():
        return ""
    beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return "".join(set(beyond.decode("utf-8", "surrogatepass")))


def own_letters(text: str) -> str:
    """Lower case without accents, in the script of the text."""
    if text.isascii():
        return text.lower()
    beyond = len(text.encode("utf-8", "surrogatepass").translate(None, _ASCII))
    if beyond * _RARE < len(text):
        return _BEYOND.sub(lambda run: _own_run(run[0]), text).lower()
    return _own_letters(text)


@lru_cache(maxsize=2000)
def _own_run(letters: str) -> str:
    return _own_letters(letters)


def _own_letters(text: str) -> str:
    unusual = _UNUSUAL.search(alphabet(text)) is not None
    if unusual:
        text = _HIDDEN.sub("", text)
        # Full-width characters are the usual reason, and this is faster than NFKC.
        text = _WIDE.sub(lambda sign: chr(ord(sign[0]) - 0xFEE0), text)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    plain = text.lower()
    if unusual:
        plain = plain.translate(_DRAWN) if _DRAWN_LETTER.search(plain) else plain
        plain = _MARKS.sub("", plain)
    accented, bare = _accents()
    if not accented.search(alphabet(plain)):
        return plain
    return accented.sub(lambda letter: bare[letter[0]], plain)


@cache
def _accents() -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern of accented letters, and their base letters."""
    bare = dict(zip("łøđıßæœðħŧ", "lodisaodht", strict=True))
    for first, last in _ACCENTED:
        for letter in map(chr, range(first, last + 1)):
            plain = _MARKS.sub("", unicodedata.normalize("NFD", letter))
            if plain != letter:
                bare[letter] = plain
    return re.compile(f"[{''.join(bare)}]"), bare


def is_astral(text: str) -> bool:
    """Whether the text has characters beyond U+FFFF."""
    return len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text)
