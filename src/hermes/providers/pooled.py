"""Rotates between several keys when one is rejected or exhausted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.providers.keys import Credential, KeyPool
from hermes.providers.reasons import CAUSE

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
