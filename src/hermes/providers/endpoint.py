"""The address and key of one model, and where a key may be sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from hermes.codec.values import Value
from hermes.net.addresses import host_of, is_local
from hermes.providers.profile import ModelProfile, WireName

if TYPE_CHECKING:
    from hermes.providers.model_catalogue import ModelCatalogue, Vendor

Auth = Literal["bearer", "x-api-key", "api-key"]


class WithSecrets(Value):
    """A value whose repr masks the `hidden` fields."""

    hidden: ClassVar[tuple[str, ...]] = ("key", "headers")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "…" if value and name in self.hidden else value) for name, value in fields]


# The names of wire formats in settings and hooks.
API_MODE_NAMES: dict[WireName, str] = {
    "chat": "chat_completions",
    "responses": "codex_responses",
    "messages": "anthropic_messages",
}


class Endpoint(WithSecrets):
    """One model at one address, with the key and the facts that a request needs."""

    name: str  # the provider's name as the user knows it
    wire: WireName
    url: str  # the part before the path of the wire format
    model: str
    key: str = ""
    auth: Auth = "bearer"
    headers: dict[str, str] = {}
    profile: ModelProfile = ModelProfile()
    vendor: str = ""  # its name in the catalogue
    server: str = ""  # the kind of a local server, if known

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def issuer(self) -> str:
        """Identifies who can read the reasoning that this endpoint sealed."""
        return f"{self.wire}:{self.host}/{self.model}"

    @property
    def api_mode(self) -> str:
        return API_MODE_NAMES[self.wire]

    @property
    def is_local(self) -> bool:
        return is_local(self.host)


UrlSource = Literal["", "env", "config"]
LOGIN = "login"
"""The source of tokens from a login: they go only to the vendor's own hosts."""

_MIN_LENGTH = 4
_PLACEHOLDERS = frozenset(
    (
        "changeme", "change-me", "change_me", "dummy", "example", "fake", "key", "null", "none",
        "no-key", "no-key-required", "placeholder", "replace-me", "replaceme", "secret", "test",
        "todo", "token", "undefined", "your-api-key", "your_api_key", "your-key-here",
        "your_key_here", "yourapikey", "api-key", "api_key", "apikey", "insert-key-here",
    )
)  # fmt: skip


def is_plausible_key(key: str) -> bool:
    """Return whether this can be a key: placeholders from examples and templates cannot."""
    key = key.strip()
    if len(key) < _MIN_LENGTH or key.lower() in _PLACEHOLDERS:
        return False
    framed = (key[0], key[-1]) in (("<", ">"), ("[", "]"), ("{", "}")) or key.startswith("${")
    return not (framed or set(key) <= set("*xX.-_•…"))


GOOGLE_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
"""The variable with the path of a Google credentials file, which is exchanged for tokens."""
AWS_PREFIX = "aws4:"
"""Begins a key that consists of AWS credentials, with which requests are signed."""
_AWS_SECRET = "AWS_SECRET_ACCESS_KEY"


def read_key(get: Callable[[str], str], name: str) -> str:
    """Return the key that a variable holds. A secret key of AWS is of use only together with its
    access key, so both and the session token are returned as one text."""
    if not name.startswith(_AWS_SECRET):
        return get(name)
    access_key, secret_key = get("AWS_ACCESS_KEY_ID"), get(_AWS_SECRET)
    if name != _AWS_SECRET or not access_key or not secret_key:
        return ""
    return f"{AWS_PREFIX}{access_key}:{secret_key}:{get('AWS_SESSION_TOKEN')}"


def may_send(
    catalogue: ModelCatalogue,
    vendor: Vendor,
    url: str,
    *,
    key_source: str,
    url_source: UrlSource = "",
) -> bool:
    """Return whether the key from this source may go to this address as a key of that vendor.

    `key_source` is the variable that holds the key, LOGIN, or "" for a key configured with the
    address. `url_source` tells where the address comes from: "" the catalogue, "env" the vendor's
    variable, "config" the settings.
    """
    if not key_source:
        return True
    host = host_of(url)
    if urlsplit(url).scheme != "https" and not is_local(host):
        return False
    if key_source == LOGIN:
        return host in vendor.own_hosts()
    if key_source not in vendor.keys:
        return bool(url_source) and key_source == key_variable_for_host(catalogue, url)
    if host in vendor.own_hosts():
        return True
    if not url_source:
        return False
    # A local server needs no cloud key, unless key and address were given as a pair.
    if is_local(host):
        return url_source == "env"
    owners = [other for other in catalogue.vendors.values() if host in other.own_hosts()]
    return not owners or any(key_source in owner.keys for owner in owners)


def key_variable_for_host(catalogue: ModelCatalogue, url: str) -> str:
    """Return the conventional key variable of a host that no vendor owns: TOGETHER_API_KEY for
    api.together.xyz. "" for local hosts, and where the variable belongs to another vendor."""
    host = host_of(url)
    labels = host.split(".")
    if is_local(host) or len(labels) < 2 or catalogue.owner(url) is not None:
        return ""
    name = re.sub(r"[^A-Z0-9]", "_", labels[-2].upper()) + "_API_KEY"
    taken = any(name in vendor.keys for vendor in catalogue.vendors.values())
    return "" if taken else name
