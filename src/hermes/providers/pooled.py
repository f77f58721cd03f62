"""Asks with one of several keys, and goes on with another when a key is refused or used up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.providers.keys import Credential, Keys
from hermes.providers.reasons import CAUSE

_MOST_AGAIN = 2


class Pooled:
    """Belongs inside Retrying: going on with another key neither waits nor counts as an attempt.
    Each key is asked at most three times for one reply. When no key is left, the error says when
    the first one is free again."""

    def __init__(self, keys: Keys, make: Callable[[Credential], Provider]) -> None:
        self._keys = keys
        self._make = make
        self._current: tuple[Credential, Provider] | None = None

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        search = _Search()
        while True:
            credential = await self._next(search)
            if notice := search.news(credential):
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
            search.failed(credential, failed, again=verdict == "again")

    async def _next(self, search: _Search) -> Credential:
        try:
            return await self._keys.pick(avoid=frozenset(search.avoid), again=search.again)
        except ProviderError as none_left:
            # Keys that are merely avoided are not at rest: then the last answer says more.
            if search.error is not None and none_left.retry_after is None:
                raise search.error from None
            raise

    def _provider(self, credential: Credential) -> Provider:
        """Only the current one is kept: it holds the whole conversation as it was encoded."""
        if self._current is not None and _same(self._current[0], credential):
            return self._current[1]
        provider = self._make(credential)
        self._current = (credential, provider)
        return provider


class _Search:
    """The way to one reply: which keys failed so far, and how."""

    def __init__(self) -> None:
        self.avoid: set[str] = set()
        self.again = ""
        self.streamed = False
        self.error: ProviderError | None = None
        self._by: Credential | None = None
        self._tries: dict[str, int] = {}

    def failed(self, credential: Credential, error: ProviderError, *, again: bool) -> None:
        self.error, self._by = error, credential
        tries = self._tries[credential.id] = self._tries.get(credential.id, 0) + 1
        self.again = credential.id if again and tries <= _MOST_AGAIN else ""
        if not self.again:
            self.avoid.add(credential.id)

    def news(self, credential: Credential) -> Notice | None:
        """That another key goes on, and why the one before it does not."""
        left, error, self._by = self._by, self.error, None
        if left is None or error is None or left.id == credential.id:
            return None
        return Notice(
            text=f"{left.provider} {CAUSE[error.reason]} ({_named(left)}); "
            f"going on with {_named(credential)}.",
            kind="warn" if error.reason in ("auth", "auth_permanent", "billing") else "lifecycle",
        )


def _named(credential: Credential) -> str:
    return credential.label or credential.id


def _same(one: Credential, other: Credential) -> bool:
    return (one.id, one.key, one.url, one.auth, one.headers) == (
        other.id,
        other.key,
        other.url,
        other.auth,
        other.headers,
    )
