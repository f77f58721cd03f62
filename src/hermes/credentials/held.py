"""A key that can be used now, wherever it is kept."""

from __future__ import annotations

from typing import Any

from hermes.codec.values import Value
from hermes.credentials.entry import borrowed_id, fingerprint
from hermes.providers.endpoint import Auth
from hermes.providers.keys import Credential
from hermes.providers.scope import usable

_HIDDEN = ("key", "root", "headers")


class Held(Value):
    """`key` is what is sent. `root` is what a new key is made from: a refresh token, or a token
    that is exchanged; "" when this key cannot be renewed. `own` means that auth.json keeps it;
    everything else is only borrowed and never written anywhere. `scope` tells to whom it may be
    sent: the variable that its provider's keys are in, LOGIN, or "" for any address of the user."""

    id: str
    provider: str
    source: str
    key: str = ""
    root: str = ""
    label: str = ""
    own: bool = False
    oauth: bool = False
    priority: int = 0
    expires_at: float | None = None
    url: str = ""
    auth: Auth | None = None
    headers: dict[str, str] = {}
    client_id: str = ""
    account_id: str = ""
    scope: str = ""
    dead: bool = False
    note: str = ""

    @property
    def fingerprint(self) -> str:
        """Of what lasts: a login stays the same while its tokens change."""
        return f"login:{self.id}" if self.root and self.own else fingerprint(self.root or self.key)

    def expires_within(self, seconds: float, now: float) -> bool:
        return not self.key or (self.expires_at is not None and self.expires_at - now <= seconds)

    def credential(self, probe: str = "") -> Credential:
        return Credential(
            id=self.id,
            provider=self.provider,
            key=self.key,
            label=self.label,
            url=self.url,
            auth=self.auth,
            headers=self.headers,
            source=self.scope,
            probe=probe,
        )

    def __repr__(self) -> str:
        return f"Held({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "…" if value and name in _HIDDEN else value) for name, value in fields]


def borrowed(provider: str, source: str, key: str, *, label: str = "", **more: Any) -> Held:
    """A key that somebody else keeps."""
    return Held(
        id=borrowed_id(provider, source),
        provider=provider,
        source=source,
        key=key,
        label=label or source.partition(":")[2] or source,
        **more,
    )


def without_repeats(keys: list[Held]) -> list[Held]:
    """Each secret once, under its first name; what cannot be a key is left out."""
    seen: set[str] = set()
    kept = []
    for key in keys:
        secret = key.key or key.root
        if usable(secret) and secret not in seen:
            seen.add(secret)
            kept.append(key)
    return kept
