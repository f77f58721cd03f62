"""An entry of auth.json: one key or login."""

from __future__ import annotations

import calendar
import hashlib
import time
from functools import lru_cache
from typing import Any, Literal

from hermes.codec.json import convert
from hermes.codec.values import JsonObject, Value

AuthType = Literal["api_key", "oauth"]
DEAD = "dead"
KEYRING = "keyring"
MANUAL = "manual"
_SHOWN_BY_REPR = ("id", "label", "auth_type", "source", "last_status")


class AuthEntry(Value):
    """`source` is `manual`, a login, or a borrowed source (`env:NAME`, `config:NAME`, the name of
    another program), of which only a fingerprint is stored. With `kept_in` "keyring" the token is
    in the system keyring. `last_status` is only ever "dead"; temporary states are elsewhere."""

    id: str
    label: str = ""
    auth_type: AuthType = "api_key"
    priority: int = 0
    source: str = MANUAL
    access_token: str = ""
    refresh_token: str = ""
    expires_at: float | None = None
    base_url: str = ""
    account_id: str = ""
    client_id: str = ""
    kept_in: str = ""
    added_at: float = 0.0
    last_status: str = ""
    last_status_at: float = 0.0
    last_error_reason: str = ""
    last_error_message: str = ""
    secret_fingerprint: str = ""

    @property
    def is_dead(self) -> bool:
        return self.last_status == DEAD

    @property
    def is_borrowed(self) -> bool:
        return self.source.partition(":")[0] in ("env", "config")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in _SHOWN_BY_REPR]


_FIELDS = frozenset(AuthEntry.__struct_fields__)


def read_entry(raw: JsonObject) -> AuthEntry:
    """Raises DecodeError. Other programs write times as text and null for missing values."""
    known = {name: value for name, value in raw.items() if name in _FIELDS and value is not None}
    for name in ("expires_at", "last_status_at"):
        if isinstance(known.get(name), str):
            known[name] = parse_time(known[name])
    return convert(AuthEntry, {name: value for name, value in known.items() if value is not None})


def write_entry(entry: AuthEntry, over: JsonObject) -> JsonObject:
    """The entry as JSON; unknown fields of the old form are kept."""
    foreign = {name: value for name, value in over.items() if name not in _FIELDS}
    own: JsonObject = {}
    for name, default in zip(
        AuthEntry.__struct_fields__[1:], AuthEntry.__struct_defaults__, strict=True
    ):
        value = getattr(entry, name)
        if value != default:
            own[name] = value
    return {"id": entry.id, **own, **foreign}


def parse_time(text: str) -> float | None:
    """Seconds since 1970 of an ISO time in UTC; None if it is not one."""
    try:
        return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


@lru_cache(maxsize=256)
def fingerprint_of(secret: str) -> str:
    """A hash that identifies a secret without revealing it."""
    return f"sha256:{hashlib.sha256(secret.encode()).hexdigest()[:16]}" if secret else ""


def borrowed_id(provider: str, source: str) -> str:
    """A stable id: the same in every process, and stored nowhere."""
    return hashlib.sha256(f"{provider}\n{source}".encode()).hexdigest()[:6]
