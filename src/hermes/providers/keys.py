"""The key for a request: the only one, or one of several with shared state."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from hermes.codec.values import Value, replace
from hermes.core.errors import ProviderError
from hermes.providers.endpoint import Auth, Endpoint

MAX_NUMBERED = 20

KeyVerdict = Literal["again", "rotate", "stop"]
"""What to do after a failed request: repeat with this key (which may have been renewed), use
another key, or give up."""


class Credential(Value):
    """Access to one provider. `url`, `auth` and `headers` override the endpoint's. `source` decides
    where the key may be sent; see `scope.may_send`. `probe` identifies the trial request that finds
    out whether a paused key works again. The repr hides key and headers."""

    id: str
    provider: str
    key: str
    label: str = ""
    url: str = ""
    auth: Auth | None = None
    headers: dict[str, str] = {}
    source: str = ""
    probe: str = ""

    def at(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with this key."""
        return replace(
            endpoint,
            key=self.key,
            url=self.url or endpoint.url,
            auth=self.auth or endpoint.auth,
            headers={**endpoint.headers, **self.headers},
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Credential({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        secret = ("key", "headers")
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "…" if value and name in secret else value) for name, value in fields]


class KeyPool(Protocol):
    """The keys of one provider, shared by all sessions and processes of a home."""

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        """A healthy key whose id is not in `avoid`, preferring `again`. Raises ProviderError when
        there is none; `retry_after` is the time until the first one is healthy again."""
        ...

    async def report(self, credential: Credential, error: ProviderError | None) -> KeyVerdict:
        """Reports the outcome of a request; `error` is None as soon as the provider accepted it."""
        ...

    def release(self, credential: Credential) -> None:
        """Reports that a request was cancelled before its outcome was known."""
        ...


class SingleKey:
    """A single key: nothing to choose or to remember."""

    def __init__(self, credential: Credential) -> None:
        self.credential = credential

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        return self.credential

    async def report(self, credential: Credential, error: ProviderError | None) -> KeyVerdict:
        return "stop"

    def release(self, credential: Credential) -> None:
        pass


def numbered_variables(name: str) -> tuple[str, ...]:
    """The variables that may hold further keys of the same kind: NAME, NAME_2, NAME_3 …"""
    return (name, *(f"{name}_{number}" for number in range(2, MAX_NUMBERED + 1)))
