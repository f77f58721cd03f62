"""Reads host names from URLs and tells local hosts from others."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

_PRIVATE = ("127.", "10.", "192.168.", "169.254.", "0.0.0.0", "::1", "fe80:", "fc", "fd")
_LOCAL_SUFFIXES = (".local", ".internal", ".localhost", ".lan", ".home.arpa")


@lru_cache(maxsize=256)
def host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


@lru_cache(maxsize=256)
def is_local(host: str) -> bool:
    """Loopback, private networks, and names that only a local resolver knows."""
    host = host.strip("[]").lower()
    if host.endswith(_LOCAL_SUFFIXES):
        return True
    if ":" in host:
        return host.startswith(("::1", "fe80:", "fc", "fd"))
    if host.replace(".", "").isdigit():
        return host.startswith(_PRIVATE) or _in_ranges(host)
    return "." not in host


def _in_ranges(host: str) -> bool:
    """172.16/12 (private) and 100.64/10 (carrier-grade NAT, overlay networks)."""
    first, _, rest = host.partition(".")
    second = rest.partition(".")[0]
    if not second.isdigit():
        return False
    return (first == "172" and 16 <= int(second) <= 31) or (
        first == "100" and 64 <= int(second) <= 127
    )
