"""Reads the host of a URL in exactly one way, and refuses what could be read in two."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv6Address

from hermes.codec.values import Value
from hermes.policy.urls.addresses import kind_of

_PLAIN_V4 = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!\Z)|\Z)){4}", re.A)
_NUMBER = re.compile(r"0x[0-9a-f]*|\d+", re.A)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.A)
# Characters that end a label in some programs and not in others.
_DOTS = "\u3002\uff0e\uff61\u2024\u2025\u2026\ufe52"
_NOT_IN_NAMES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Sk", "Sm"))


class RefusedUrl(ValueError):
    """`category` is the kind of refusal; the text says why, to a person."""

    def __init__(self, reason: str, category: str) -> None:
        super().__init__(reason)
        self.category = category


class Host(Value):
    """`address` is set when the host is written as one. `name` is in its ASCII form."""

    name: str
    address: str = ""


def parse_host(text: str) -> Host:
    """RefusedUrl when the host is empty, ambiguous or not a host."""
    if not text:
        raise RefusedUrl("The URL names no host.", "ambiguous_url")
    if text.startswith("["):
        return _v6(text)
    name = _ascii_name(text).removesuffix(".")
    if _PLAIN_V4.fullmatch(name):
        return Host(name=name, address=name)
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise RefusedUrl(
            f"{text!r} is an unusual spelling of a number, not a name.", "ambiguous_url"
        )
    if len(name) > 253 or not all(_is_label(label) for label in labels):
        raise RefusedUrl(f"{text!r} is not a name of a host.", "ambiguous_url")
    return Host(name=name)


def _v6(text: str) -> Host:
    inner = text[1:-1]
    try:
        if not text.endswith("]") or "%" in inner:
            raise ValueError
        address = str(IPv6Address(inner))
    except ValueError:
        raise RefusedUrl(f"{text!r} is not an address.", "ambiguous_url") from None
    kind = kind_of(address)
    if kind is not None and kind.odd and kind.reach == "global":
        raise RefusedUrl(f"{text!r} is {kind.words} in an unusual spelling.", "ambiguous_url")
    return Host(name=f"[{address}]", address=address)


def _ascii_name(text: str) -> str:
    if text.isascii():
        return text.lower()
    for letter in text:
        # Programs differ in what these turn into, so the check and the connection might too.
        compatible = unicodedata.normalize("NFKC", letter)
        kind = unicodedata.category(letter)
        # A picture may stand for itself only.
        hidden = kind in _NOT_IN_NAMES or (kind == "So" and compatible != letter)
        if not letter.isascii() and (letter in _DOTS or hidden or compatible.isascii()):
            raise RefusedUrl(
                f"The host holds {letter!a}, which is read in several ways.", "ambiguous_url"
            )
    name = unicodedata.normalize("NFKC", text).lower()
    return ".".join(_punycode(label) for label in name.split("."))


def _punycode(label: str) -> str:
    if label.isascii():
        return label
    try:
        return "xn--" + label.encode("punycode").decode("ascii")
    except UnicodeError:
        raise RefusedUrl(f"{label!a} cannot be part of a name.", "ambiguous_url") from None


def _is_label(label: str) -> bool:
    if not _LABEL.fullmatch(label):
        return False
    if not label.startswith("xn--"):
        return True
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    # A name that hides plain letters in the encoding is a disguise.
    return not unicodedata.normalize("NFKC", decoded).isascii()
