"""The address, key, model and wire format of one model."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal
from urllib.parse import urlsplit

from hermes.codec.values import Value
from hermes.providers.profile import ModelProfile, WireName

Auth = Literal["bearer", "x-api-key", "api-key"]

_PRIVATE = ("127.", "10.", "192.168.", "169.254.", "0.0.0.0", "::1", "fe80:", "fc", "fd")
_LOCAL_SUFFIXES = (".local", ".internal", ".localhost", ".lan", ".home.arpa")


class Endpoint(Value):
    """`name` is the provider's name as the user knows it, `vendor` its name in the catalogue. `url`
    is the part before the wire format's path. `server` is the kind of a local server, if known. The
    repr hides the key."""

    name: str
    wire: WireName
    url: str
    model: str
    key: str = ""
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    profile: ModelProfile = ModelProfile()
    vendor: str = ""
    server: str = ""

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def issuer(self) -> str:
        """Identifies who can read the reasoning that this endpoint sealed."""
        return f"{self.wire}:{self.host}/{self.model}"

    @property
    def is_local(self) -> bool:
        return is_local(self.host)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Endpoint({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        secret = ("key", "headers")
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "…" if value and name in secret else value) for name, value in fields]


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
