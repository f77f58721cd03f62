"""The keys of a provider, and rotation between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from operator import attrgetter
from typing import Literal, Protocol

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.providers.endpoint import Auth, Endpoint, WithSecrets
from hermes.providers.failure_patterns import CAUSE

MAX_NUMBERED = 20

KeyVerdict = Literal["again", "rotate", "stop"]
"""What to do after a failed request: repeat with this key (which may have been renewed), use
another key, or give up."""


class Credential(WithSecrets):
    """Access to one provider."""

    id: str
    provider: str
    key: str
    label: str = ""
    url: str = ""  # overrides that of the endpoint, like `auth` and `headers`
    auth: Auth | None = None
    headers: dict[str, str] = {}
    source: str = ""  # decides where the key may be sent; see `endpoint.may_send`
    probe: str = ""  # identifies the trial request that finds out whether a paused key works again

    def at(self, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with this key."""
        return replace(
            endpoint,
            key=self.key,
            url=self.url or endpoint.url,
            auth=self.auth or endpoint.auth,
            headers={**endpoint.headers, **self.headers},
        )


class KeyPool(Protocol):
    """The keys of one provider, shared by all sessions and processes of a home."""

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        """Return a healthy key whose id is not in `avoid`, preferring `again`. Raise ProviderError
        when there is none; `retry_after` is the time until the first one is healthy again."""
        ...

    async def report(self, credential: Credential, error: ProviderError | None) -> KeyVerdict:
        """Report the outcome of a request; `error` is None as soon as the provider accepted it."""
        ...

    def release(self, credential: Credential) -> None:
        """Report that a request was cancelled before its outcome was known."""
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
    """Return the variables that may hold further keys of the same kind: NAME, NAME_2, NAME_3 …"""
    return (name, *(f"{name}_{number}" for number in range(2, MAX_NUMBERED + 1)))


_MAX_REPEATS = 2


class KeyRotatingProvider:
    """Uses another key when one fails. `RetryingProvider` wraps it, so switching keys neither waits
    nor counts as an attempt. Each key is used at most three times per reply. When no key is left,
    the error says when the first one is available again."""

    def __init__(self, keys: KeyPool, make: Callable[[Credential], Provider]) -> None:
        self._keys = keys
        self._make = make
        self._current: tuple[Credential, Provider] | None = None

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        avoid: set[str] = set()
        tries: Counter[str] = Counter()
        again, streamed = "", False
        failure: tuple[Credential, ProviderError] | None = None
        while True:
            try:
                credential = await self._keys.pick(avoid=frozenset(avoid), again=again)
            except ProviderError as none_left:
                # Keys in `avoid` are not in cooldown, so the last response says more.
                if failure is not None and none_left.retry_after is None:
                    raise failure[1] from None
                raise
            if failure is not None and failure[0].id != credential.id:
                yield _switch_notice(*failure, credential)
            if streamed:
                streamed = False
                yield Restarted()
            settled = False
            failed: ProviderError | None = None
            try:
                async with aclosing(self._provider(credential).reply(prompt)) as stream:
                    async for item in stream:
                        if not isinstance(item, Notice):
                            streamed = True
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
            failure = (credential, failed)
            tries[credential.id] += 1
            repeat = verdict == "again" and tries[credential.id] <= _MAX_REPEATS
            again = credential.id if repeat else ""
            if not repeat:
                avoid.add(credential.id)

    def _provider(self, credential: Credential) -> Provider:
        """Return the provider for a key. Only the current one is kept: it caches the whole encoded
        conversation."""
        if self._current is not None and _identity(self._current[0]) == _identity(credential):
            return self._current[1]
        provider = self._make(credential)
        self._current = (credential, provider)
        return provider


def _switch_notice(old: Credential, error: ProviderError, new: Credential) -> Notice:
    return Notice(
        text=f"{old.provider} {CAUSE[error.reason]} ({old.label or old.id}); "
        f"continuing with {new.label or new.id}.",
        kind="warn" if error.reason in ("auth", "auth_permanent", "billing") else "lifecycle",
    )


_identity = attrgetter("id", "key", "url", "auth", "headers")
