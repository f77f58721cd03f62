"""The address, key, model and wire format of one model."""

from __future__ import annotations

from typing import Any, Literal

from hermes.codec.values import Value
from hermes.providers.addresses import host_of, is_local
from hermes.providers.profile import ModelProfile, WireName

Auth = Literal["bearer", "x-api-key", "api-key"]


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
