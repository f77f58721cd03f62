"""Folds a text for matching: case, accents, look-alike letters, emphasis. Lines are kept."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise

from hermes.policy.patterns import regex

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
_DRAWN_LETTERS = (
    "[\u0262\u026a\u0274\u0280\u0299\u029c\u029f\u1d00-\u1d22\ua730\ua731\U0001f150-\U0001f189]"
)
_HIDDEN_CHARACTERS = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Letters of two scripts in one word.
_MIXED = regex(
    "[a-z][\u0250-\u02af\u0370-\u052f\u2170-\u217f]|[\u0250-\u02af\u0370-\u052f\u2170-\u217f][a-z]"
)
_FOREIGN = regex("[\u0250-\u02af\u0370-\u052f\u2170-\u217f]")
_WIDE_LETTERS = "[\uff01-\uff5e]"
_COMBINING = "[\u0300-\u036f\u0489]"
_DRAWN_LETTER, _HIDDEN = regex(_DRAWN_LETTERS), regex(_HIDDEN_CHARACTERS)
_WIDE, _MARKS = regex(_WIDE_LETTERS), regex(_COMBINING)
_UNUSUAL = regex(
    (_HIDDEN_CHARACTERS + _WIDE_LETTERS + _DRAWN_LETTERS + _COMBINING).replace("][", "")
)
_ASCII = bytes(range(128))
# If non-ASCII letters are this rare, only they are processed.
_BEYOND = regex("[^\x00-\x7f]+")
_RARE = 20
# Ranges of letters with accents.
_ACCENTED = ((0xC0, 0x24F), (0x386, 0x3CE), (0x400, 0x45F), (0x4C1, 0x4F9), (0x1E00, 0x1FFF))
# Signs between which an underscore is emphasis: one before it, or one after it.
_BEFORE, _AFTER = frozenset((b" ", b"\n", b"(")), frozenset((b" ", b"\n", b".", b",", b")"))


def fold(text: str) -> str:
    """Return the text in lower case, without accents and emphasis."""
    return readings(text)[0]


def readings(text: str) -> tuple[str, str]:
    """Return the folded text, and the same without mapping look-alike letters to Latin."""
    own = own_letters(text)
    if _FOREIGN.search(alphabet(own)) and _MIXED.search(own):
        return _strip_emphasis(own.translate(_LOOKALIKES)), _strip_emphasis(own)
    plain = _strip_emphasis(own)
    return plain, plain


def _strip_emphasis(plain: str) -> str:
    """Remove emphasis; backticks become quotation marks."""
    # Searching bytes is much faster than searching a text that is not ASCII.
    data = plain.encode("utf-8", "surrogatepass")
    first, *rest = data.replace(b"*", b"").replace(b"~~", b"").replace(b"`", b'"').split(b"_")
    found = [first]
    for before, after in pairwise((first, *rest)):
        emphasis = before[-1:] in _BEFORE or after[:1] in _AFTER
        found += (after,) if emphasis else (b"_", after)
    return b"".join(found).decode("utf-8", "surrogatepass")


def alphabet(text: str) -> str:
    """Return the distinct non-ASCII letters: searching these is much faster than searching the
    text."""
    if text.isascii():
        return ""
    beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return "".join(set(beyond.decode("utf-8", "surrogatepass")))


def own_letters(text: str) -> str:
    """Return the text in lower case without accents, in its own script."""
    if text.isascii():
        return text.lower()
    beyond = len(text.encode("utf-8", "surrogatepass").translate(None, _ASCII))
    if beyond * _RARE < len(text):
        folded = _BEYOND.sub(lambda run: _own_run(run[0]), text)
        # Only ASCII letters are left; bytes are lowered faster.
        lowered = folded.encode("utf-8", "surrogatepass").lower()
        return lowered.decode("utf-8", "surrogatepass")
    return _own_letters(text)


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


_own_run = lru_cache(maxsize=2000)(_own_letters)


@cache
def _accents() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern of accented letters, and their base letters."""
    bare = dict(zip("łøđıßæœðħŧ", "lodisaodht", strict=True))
    for first, last in _ACCENTED:
        for letter in map(chr, range(first, last + 1)):
            plain = _MARKS.sub("", unicodedata.normalize("NFD", letter))
            if plain != letter:
                bare[letter] = plain
    return re.compile(f"[{''.join(bare)}]"), bare
