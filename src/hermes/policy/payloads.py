"""Finds data in URLs, names and arguments that go to another machine: text that was read in the
conversation, plain or disguised, and opaque values."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, unquote_plus

from hermes.core.ports import ConversationText
from hermes.policy.patterns import regex

# Shorter words are too common; a git hash names what everybody has.
LEAST = 12
# A part of a key or number: shorter, but letters and digits alternate.
LEAST_MIXED = 8
MIXED_SWITCHES = 3
# So many words in a row are a quotation: in an address, and in text for a server, which is often
# an error message.
QUOTED_WORDS = 4
QUOTED_IN_TEXT = 12
QUOTED_CHARS = 16
MOST_WINDOWS = 200
_PIECE = regex(r"[\w+-]+={0,2}")
_COMMIT = regex(r"[0-9a-f]{40}")
_OPAQUE = regex(r"[A-Za-z0-9+]{12,}={0,2}")
_SWITCH = regex(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_SPOKEN = regex(r"[^\W_]+")


def find_read(text: str, seen: ConversationText, quoted: int = QUOTED_WORDS) -> str:
    """Return the first piece of the text that was read in this conversation and not written by the
    person, plain, encoded or reversed, or as so many words in a row; "" for none."""
    for piece in _pieces(text):
        if seen.in_results(piece) and not seen.user_wrote(piece):
            return piece
    return next(filter(None, (_find_quotation(each, seen, quoted) for each in _spans(text))), "")


def find_opaque(text: str, seen: ConversationText) -> str:
    """Return a value of letters and digits that is new to the conversation: nobody can tell what it
    means."""
    for found in _OPAQUE.finditer(unquote(text)):
        piece = found[0]
        mixed = any(map(str.isdigit, piece)) and any(map(str.isalpha, piece))
        if mixed and not _COMMIT.fullmatch(piece) and not seen.occurs(piece):
            return piece
    return ""


def find_new_value(query: str, seen: ConversationText) -> str:
    """Return a long value of a URL's query that is new to the conversation."""
    values = (unquote_plus(each.partition("=")[2] or each) for each in query.split("&"))
    new = (each for each in values if len(each) >= LEAST and not seen.occurs(each))
    return next(new, "")


def _pieces(text: str) -> Iterator[str]:
    for piece in dict.fromkeys(_PIECE.findall(unquote(text))):
        if len(piece) < LEAST:
            if len(piece) >= LEAST_MIXED and len(_SWITCH.findall(piece)) >= MIXED_SWITCHES:
                yield piece
                yield piece[::-1]
            continue
        if not _COMMIT.fullmatch(piece) and any(sign.isdigit() for sign in piece):
            yield piece
            yield piece[::-1]
            yield codecs.encode(piece, "rot13")
        yield from _decode(piece)


def _decode(piece: str) -> Iterator[str]:
    """Yield the piece decoded from base64, base32 or hex, if that gives text."""
    whole = piece.rstrip("=").encode()
    for read in (_base64, _base32, binascii.unhexlify):
        try:
            text = read(whole).decode("utf-8").strip()
        except (ValueError, binascii.Error):
            continue
        if len(text) >= 8 and text.isprintable():
            yield text


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64decode(data.replace(b"+", b"-") + b"=" * (-len(data) % 4))


def _base32(data: bytes) -> bytes:
    return base64.b32decode(data + b"=" * (-len(data) % 8), casefold=True)


def _spans(text: str) -> Iterable[str]:
    """Return the parts of an address or command that may hold prose: a quotation does not go
    across segments of a path, because paths resemble each other."""
    return (unquote_plus(each) for each in re.split(r"[/?&='\"\n]", text))


def _find_quotation(text: str, seen: ConversationText, least: int) -> str:
    words = _SPOKEN.findall(text)
    for start in range(min(len(words) - least + 1, MOST_WINDOWS)):
        window = words[start : start + least]
        if sum(map(len, window)) < QUOTED_CHARS - least:
            continue
        pattern = re.compile(r"[\W_]+".join(map(re.escape, window)), re.IGNORECASE)
        if seen.results_match(pattern) and not seen.user_matches(pattern):
            return " ".join(window)
    return ""
