"""Parses a URL once, for the check and the connection, and refuses ambiguous hosts."""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv6Address
from urllib.parse import quote

from hermes.codec.values import Value
from hermes.policy.patterns import regex, word_set
from hermes.policy.urls.addresses import address_kind

_PLAIN_V4 = regex(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!\Z)|\Z)){4}", re.A)
_NUMBER = regex(r"0x[0-9a-f]*|\d+", re.A)
_LABEL = regex(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.A)
# Characters that end a label in some programs only.
_DOTS = "\u3002\uff0e\uff61\u2024\u2025\u2026\ufe52"
_NOT_IN_NAMES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Sk", "Sm"))


class RefusedUrl(ValueError):
    """A URL is refused. `category` is the kind of refusal; the message explains it."""

    def __init__(self, reason: str, category: str = "ambiguous_url") -> None:
        super().__init__(reason)
        self.category = category


class UrlHost(Value):
    """The host of a URL. `address` is set if it is an address; `name` is in ASCII form."""

    name: str
    address: str = ""


def parse_host(text: str) -> UrlHost:
    """Parse a host; raise RefusedUrl if it is empty, ambiguous or invalid."""
    if not text:
        raise RefusedUrl("The URL names no host.")
    if text.startswith("["):
        return _v6(text)
    name = _ascii_name(text).removesuffix(".")
    if _PLAIN_V4.fullmatch(name):
        return UrlHost(name=name, address=name)
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise RefusedUrl(f"{text!r} is an unusual spelling of a number, not a name.")
    if len(name) > 253 or not all(_is_label(label) for label in labels):
        raise RefusedUrl(f"{text!r} is not a host name.")
    return UrlHost(name=name)


def _v6(text: str) -> UrlHost:
    inner = text[1:-1]
    try:
        if not text.endswith("]") or "%" in inner:
            raise ValueError
        address = str(IPv6Address(inner))
    except ValueError:
        raise RefusedUrl(f"{text!r} is not an address.") from None
    kind = address_kind(address)
    if kind is not None and kind.odd and kind.reach == "global":
        raise RefusedUrl(f"{text!r} is {kind.description} in an unusual spelling.")
    return UrlHost(name=f"[{address}]", address=address)


def _ascii_name(text: str) -> str:
    if text.isascii():
        return text.lower()
    for letter in text:
        # Programs normalise these differently, so the check and the connection could differ.
        compatible = unicodedata.normalize("NFKC", letter)
        kind = unicodedata.category(letter)
        # An emoji may not be mapped to something else.
        hidden = kind in _NOT_IN_NAMES or (kind == "So" and compatible != letter)
        if not letter.isascii() and (letter in _DOTS or hidden or compatible.isascii()):
            raise RefusedUrl(f"The host contains {letter!a}, which programs parse differently.")
    name = unicodedata.normalize("NFKC", text).lower()
    return ".".join(_punycode(label) for label in name.split("."))


def _punycode(label: str) -> str:
    if label.isascii():
        return label
    try:
        return "xn--" + label.encode("punycode").decode("ascii")
    except UnicodeError:
        raise RefusedUrl(f"{label!a} cannot be part of a name.") from None


def _is_label(label: str) -> bool:
    if not _LABEL.fullmatch(label):
        return False
    if not label.startswith("xn--"):
        return True
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    # Punycode that encodes plain letters is a disguise.
    return not unicodedata.normalize("NFKC", decoded).isascii()


LONGEST = 16_384
PORTS = {"http": 80, "https": 443}
_SCHEME = regex(r"([A-Za-z][A-Za-z0-9+.-]*):", re.A)
_CONTROL = regex(
    r"[\x00-\x20\x7f-\xa0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]"
)
_AUTHORITY_END = regex(r"[/?#\\]")
_USER = regex(r"[A-Za-z0-9_~!$&'()*+,;=-]*(?::[A-Za-z0-9._~!$&'()*+,;=-]*)?", re.A)
_PORT = regex(r"[1-9]\d{0,4}|", re.A)
_TARGET_SAFE = "/?%:@!$&'()*+,;=-._~[]|^`{}\""


class Target(Value):
    """A parsed URL."""

    scheme: str
    host: UrlHost  # for SNI and the Host header
    port: int
    path: str  # for the request line
    user: str = ""  # the part before `@`, for the Authorization header

    @property
    def url(self) -> str:
        """The canonical URL without user and fragment."""
        return f"{self.origin}{self.path}"

    @property
    def origin(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host.name}{port}"


def parse_url(text: str) -> Target:
    """Parse a URL; raise RefusedUrl unless it is http(s) and unambiguous."""
    text = text.strip(" ")
    if len(text) > LONGEST:
        raise RefusedUrl("The URL is too long.")
    if found := _CONTROL.search(text):
        raise RefusedUrl(f"The URL contains {found[0]!a}, which programs parse differently.")
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise RefusedUrl("The URL has no scheme; write https:// before it.", "scheme")
    name = scheme[1].lower()
    if name not in PORTS:
        raise RefusedUrl(f"Only http and https may be fetched, not {name}.", "scheme")
    rest = text[scheme.end() :]
    if not rest.startswith("//") or rest[2:3] in ("/", "\\"):
        raise RefusedUrl(f"After {name}: exactly two slashes are expected.")
    return _target(name, rest[2:])


def _target(scheme: str, rest: str) -> Target:
    end = _AUTHORITY_END.search(rest)
    authority, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    if tail.startswith(("?@", "#@")):
        raise RefusedUrl("The @ after the host could begin another host.")
    path = tail.partition("#")[0]
    if "\\" in path.partition("?")[0]:
        raise RefusedUrl("The URL contains a backslash, which may end the host.")
    user, at, host_port = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise RefusedUrl("The part before @ looks like a host.")
    host, port = _host_and_port(host_port)
    return Target(
        scheme=scheme,
        host=parse_host(host),
        port=_port(port) or PORTS[scheme],
        path=quote(path if path.startswith("/") else f"/{path}", safe=_TARGET_SAFE),
        user=user,
    )


def _host_and_port(host_port: str) -> tuple[str, str]:
    if "%" in host_port:
        raise RefusedUrl("The host contains a percent sign.")
    if host_port.startswith("["):
        host, bracket, port = host_port.partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise RefusedUrl(f"{host_port!r} is not an address.")
        return host + bracket, port[1:]
    host, _, port = host_port.partition(":")
    return host, port


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text or 0) > 65_535:
        raise RefusedUrl(f"{text!r} is not a port.")
    port = int(text or 0)
    if str(port) in word_set("ports_of_other_protocols"):
        raise RefusedUrl(f"Port {port} belongs to another protocol.", "port")
    return port


def join(here: Target, location: str) -> str:
    """Resolve a redirect's `Location` against its base; the result is not checked yet."""
    location = location.strip(" ")
    if _SCHEME.match(location) or "\\" in location:
        return location
    if location.startswith("//"):
        return f"{here.scheme}:{location}"
    path, _, _ = here.path.partition("?")
    if location.startswith("?"):
        return f"{here.origin}{path}{location}"
    if not location.startswith("/"):
        location = path.rpartition("/")[0] + "/" + location
    return f"{here.origin}{location}"
