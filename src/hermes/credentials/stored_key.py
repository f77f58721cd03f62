"""A key of a provider from any source."""

from __future__ import annotations

from typing import Any, ClassVar

from hermes.credentials.auth_file import borrowed_id, fingerprint_of
from hermes.providers.endpoint import Auth, WithSecrets, is_plausible_key
from hermes.providers.keys import Credential


class StoredKey(WithSecrets):
    """A key or login with what is needed to send and refresh it."""

    hidden: ClassVar[tuple[str, ...]] = ("key", "renewal_token", "headers")

    id: str
    provider: str
    source: str
    key: str = ""  # sent to the provider
    # a refresh token, or a token to exchange for keys; "" if it cannot be refreshed
    renewal_token: str = ""
    label: str = ""
    own: bool = False  # stored in auth.json; other keys are borrowed and never written
    oauth: bool = False
    priority: int = 0
    expires_at: float | None = None
    url: str = ""
    auth: Auth | None = None
    headers: dict[str, str] = {}
    client_id: str = ""
    account_id: str = ""
    # where it may be sent: the variable of its provider's keys, LOGIN, or "" for any address that
    # is configured
    scope: str = ""
    dead: bool = False
    note: str = ""

    @property
    def fingerprint(self) -> str:
        """Identifies the secret; a login keeps its fingerprint while its tokens change."""
        if self.renewal_token and self.own:
            return f"login:{self.id}"
        return fingerprint_of(self.renewal_token or self.key)

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


def borrowed_key(
    provider: str, source: str, key: str, *, label: str = "", **more: Any
) -> StoredKey:
    """Return a key that auth.json does not store."""
    return StoredKey(
        id=borrowed_id(provider, source),
        provider=provider,
        source=source,
        key=key,
        label=label or source.partition(":")[2] or source,
        **more,
    )


def drop_duplicates(keys: list[StoredKey]) -> list[StoredKey]:
    """Drop repeated secrets and placeholders; keep the first of each."""
    seen: set[str] = set()
    kept = []
    for key in keys:
        secret = key.key or key.renewal_token
        if is_plausible_key(secret) and secret not in seen:
            seen.add(secret)
            kept.append(key)
    return kept
