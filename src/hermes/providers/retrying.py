"""Retries requests: after a wait, or with an adapted profile."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from hermes.core.errors import ProviderError, Reason
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import World
from hermes.providers.failures import is_malformed
from hermes.providers.repairs import AdaptiveProfile
from hermes.providers.waits import MAX_WAIT_SECONDS

_MAX_REPAIRS = 8


class RetryingProvider:
    """`attempts` counts all requests for one reply except those after a repair of `fit`. `fewer`
    lowers the count for some reasons when another model can take over. Rate-limit waits are
    announced; other retries are silent unless they fail. After `silences` consecutive time-outs,
    across turns, the next one is final."""

    def __init__(
        self,
        inner: Provider,
        world: World,
        *,
        fit: AdaptiveProfile | None = None,
        attempts: int = 3,
        silences: int = 5,
        fewer: Mapping[Reason, int] | None = None,
    ) -> None:
        self._inner = inner
        self._world = world
        self._fit = fit
        self._attempts = attempts
        self._silences = silences
        self._fewer = fewer or {}
        self._silent = 0

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        state = _RetryProgress()
        while True:
            failed: ProviderError | None = None
            try:
                async with aclosing(self._inner.reply(prompt)) as stream:
                    async for item in stream:
                        state.streamed |= not isinstance(item, Notice)
                        yield item
            except ProviderError as error:
                failed = error
            if failed is None:
                self._silent = 0
                return
            if not self._try_repair(failed, state):
                state.attempts += 1
                if self._is_final(failed, state.attempts):
                    for notice in state.notices:
                        yield notice
                    raise failed
                seconds = self._seconds(failed, state.attempts)
                notice = _retry_notice(failed, seconds, state.attempts, self._attempts)
                if failed.reason in ("rate_limit", "upstream_rate_limit"):
                    yield notice
                else:
                    state.notices.append(notice)
                await self._world.clock.sleep(seconds)
            if state.streamed:
                state.streamed = False
                yield Restarted()

    def _try_repair(self, error: ProviderError, state: _RetryProgress) -> bool:
        if self._fit is None or state.repairs >= _MAX_REPAIRS:
            return False
        state.repairs += 1
        return self._fit.learn(error)

    def _is_final(self, error: ProviderError, attempts: int) -> bool:
        self._silent = self._silent + 1 if error.reason == "timeout" else 0
        stuck = self._silent >= self._silences
        most = min(self._attempts, self._fewer.get(error.reason, self._attempts))
        return stuck or not error.retryable or attempts >= most

    def _seconds(self, error: ProviderError, attempt: int) -> float:
        if error.retry_after is not None:
            return min(error.retry_after, MAX_WAIT_SECONDS)
        return backoff(self._world, attempt, slow=is_malformed(error))


class _RetryProgress:
    def __init__(self) -> None:
        self.attempts = 0
        self.repairs = 0
        self.streamed = False
        self.notices: list[Notice] = []


def backoff(world: World, attempt: int, *, slow: bool) -> float:
    """2, 4, 8 … 60 seconds, or 5, 10 … 120 for invalid responses, plus up to 50 % jitter."""
    first, most = (5.0, 120.0) if slow else (2.0, 60.0)
    seconds: float = min(first * 2 ** (attempt - 1), most)
    return seconds * (1 + world.chance.random() / 2)


def _retry_notice(error: ProviderError, seconds: float, attempt: int, attempts: int) -> Notice:
    return Notice(text=f"{error} Retrying in {seconds:.0f} s ({attempt + 1} of {attempts}).")
