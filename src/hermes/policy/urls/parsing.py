"""Takes a URL apart once, for the check and for the connection alike."""

from __future__ import annotations

import re
from urllib.parse import quote

from hermes.codec.values import Value
from hermes.policy.urls.hosts import Host, RefusedUrl, parse_host

LONGEST = 16_384
PORTS = {"http": 80, "https": 443}
# Ports of other protocols, whose servers can be made to obey what is sent as HTTP.
OTHER_PROTOCOLS = frozenset(
    map(
        int,
        """
    1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111
    113 115 117 119 123 135 137 138 139 143 161 179 389 427 445 465 512 513 514 515 526 530 531
    532 540 548 554 556 563 587 601 636 989 990 993 995 1433 1521 1719 1720 1723 2049 2375 2376
    3306 3659 4045 4190 5060 5061 5432 6000 6379 6566 6665 6666 6667 6668 6669 6679 6697 10080
    11211 27017
    """.split(),
    )
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.A)
_CONTROL = re.compile(
    r"[\x00-\x20\x7f-\xa0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]"
)
_AUTHORITY_END = re.compile(r"[/?#\\]")
_USER = re.compile(r"[A-Za-z0-9_~!$&'()*+,;=-]*(?::[A-Za-z0-9._~!$&'()*+,;=-]*)?", re.A)
_PORT = re.compile(r"[1-9]\d{0,4}|", re.A)
_TARGET_SAFE = "/?%:@!$&'()*+,;=-._~[]|^`{}\""


class Target(Value):
    """Where a URL leads. `path` is what the request line says; `host` what SNI and Host say.
    `user` is the part before `@`, for the Authorization header."""

    scheme: str
    host: Host
    port: int
    path: str
    user: str = ""

    @property
    def url(self) -> str:
        """The same place in its plain spelling, without user and fragment."""
        return f"{self.origin}{self.path}"

    @property
    def origin(self) -> str:
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host.name}{port}"


def parse_url(text: str) -> Target:
    """RefusedUrl unless the URL is http or https and every program reads it in the same way."""
    text = text.strip(" ")
    if len(text) > LONGEST:
        raise RefusedUrl("The URL is too long.", "ambiguous_url")
    if found := _CONTROL.search(text):
        raise RefusedUrl(
            f"The URL holds {found[0]!a}, which programs read in different ways.", "ambiguous_url"
        )
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise RefusedUrl("The URL has no scheme; write https:// before it.", "scheme")
    name = scheme[1].lower()
    if name not in PORTS:
        raise RefusedUrl(f"Only http and https may be fetched, not {name}.", "scheme")
    rest = text[scheme.end() :]
    if not rest.startswith("//") or rest[2:3] in ("/", "\\"):
        raise RefusedUrl(f"After {name}: exactly two slashes are expected.", "ambiguous_url")
    return _target(name, rest[2:])


def _target(scheme: str, rest: str) -> Target:
    end = _AUTHORITY_END.search(rest)
    authority, tail = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    if tail.startswith(("?@", "#@")):
        raise RefusedUrl("The @ after the host could begin another host.", "ambiguous_url")
    path = tail.partition("#")[0]
    if "\\" in path.partition("?")[0]:
        raise RefusedUrl("The URL holds a backslash, which may end the host.", "ambiguous_url")
    user, at, place = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise RefusedUrl("What stands before @ looks like a host.", "ambiguous_url")
    host, port = _host_and_port(place)
    return Target(
        scheme=scheme,
        host=parse_host(host),
        port=_port(port) or PORTS[scheme],
        path=_request_path(path),
        user=user,
    )


def _host_and_port(place: str) -> tuple[str, str]:
    if "%" in place:
        raise RefusedUrl("The host holds a percent sign.", "ambiguous_url")
    if place.startswith("["):
        host, bracket, port = place.partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise RefusedUrl(f"{place!r} is not an address.", "ambiguous_url")
        return host + bracket, port[1:]
    host, _, port = place.partition(":")
    return host, port


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or int(text or 0) > 65_535:
        raise RefusedUrl(f"{text!r} is not a port.", "ambiguous_url")
    port = int(text or 0)
    if port in OTHER_PROTOCOLS:
        raise RefusedUrl(f"Port {port} belongs to another protocol.", "port")
    return port


def _request_path(path: str) -> str:
    if not path.startswith("/"):
        path = "/" + path
    return quote(path, safe=_TARGET_SAFE)


def join(here: Target, location: str) -> str:
    """The absolute form of a redirect's `Location`; it is still to be parsed and judged."""
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
