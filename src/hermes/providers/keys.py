"""The keys of a provider, and rotation between them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Literal, Protocol

from hermes.codec.values import Value, replace
from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.providers.endpoint import Auth, Endpoint
from hermes.providers.failure_patterns import CAUSE

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


_MAX_REPEATS = 2


class KeyRotatingProvider:
    """Belongs inside Retrying: switching keys neither waits nor counts as an attempt. Each key is
    used at most three times per reply. When no key is left, the error says when the first one is
    available again."""

    def __init__(self, keys: KeyPool, make: Callable[[Credential], Provider]) -> None:
        self._keys = keys
        self._make = make
        self._current: tuple[Credential, Provider] | None = None

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        search = _KeySearch()
        while True:
            credential = await self._next(search)
            if notice := search.switch_notice(credential):
                yield notice
            if search.streamed:
                search.streamed = False
                yield Restarted()
            settled = False
            failed: ProviderError | None = None
            try:
                async with aclosing(self._provider(credential).reply(prompt)) as stream:
                    async for item in stream:
                        if not isinstance(item, Notice):
                            search.streamed = True
                            if not settled:
                                settled = True
                                await self._keys.report(credential, None)
                        yield item
                settled = True
            except ProviderError as error:
                settled = True
                failed = error
            finally:
                if not settled:
                    self._keys.release(credential)
            if failed is None:
                return
            verdict = await self._keys.report(credential, failed)
            if verdict == "stop":
                raise failed
            search.record_failure(credential, failed, again=verdict == "again")

    async def _next(self, search: _KeySearch) -> Credential:
        try:
            return await self._keys.pick(avoid=frozenset(search.avoid), again=search.again)
        except ProviderError as none_left:
            # Keys in `avoid` are not in cooldown, so the last response says more.
            if search.error is not None and none_left.retry_after is None:
                raise search.error from None
            raise

    def _provider(self, credential: Credential) -> Provider:
        """Keeps only the current provider: it caches the whole encoded conversation."""
        if self._current is not None and _is_same(self._current[0], credential):
            return self._current[1]
        provider = self._make(credential)
        self._current = (credential, provider)
        return provider


class _KeySearch:
    """The state of one reply: which keys failed, and how."""

    def __init__(self) -> None:
        self.avoid: set[str] = set()
        self.again = ""
        self.streamed = False
        self.error: ProviderError | None = None
        self._by: Credential | None = None
        self._tries: dict[str, int] = {}

    def record_failure(self, credential: Credential, error: ProviderError, *, again: bool) -> None:
        self.error, self._by = error, credential
        tries = self._tries[credential.id] = self._tries.get(credential.id, 0) + 1
        self.again = credential.id if again and tries <= _MAX_REPEATS else ""
        if not self.again:
            self.avoid.add(credential.id)

    def switch_notice(self, credential: Credential) -> Notice | None:
        """Announces the switch to another key, with the reason."""
        left, error, self._by = self._by, self.error, None
        if left is None or error is None or left.id == credential.id:
            return None
        return Notice(
            text=f"{left.provider} {CAUSE[error.reason]} ({_display_name(left)}); "
            f"continuing with {_display_name(credential)}.",
            kind="warn" if error.reason in ("auth", "auth_permanent", "billing") else "lifecycle",
        )


def _display_name(credential: Credential) -> str:
    return credential.label or credential.id


def _is_same(one: Credential, other: Credential) -> bool:
    return (one.id, one.key, one.url, one.auth, one.headers) == (
        other.id,
        other.key,
        other.url,
        other.auth,
        other.headers,
    )
