"""Asks again when that can help: after a wait, or asked in another way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from hermes.core.errors import ProviderError, Reason
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import World
from hermes.providers.failures import is_malformed
from hermes.providers.repairs import Fit
from hermes.providers.waits import LONGEST

_MOST_REPAIRS = 8


class Retrying:
    """`attempts` counts all requests for one reply but those that a repair of `fit` made possible.
    `fewer` are smaller counts for some reasons, where somebody else can answer instead.
    Waits for a rate limit are told at once; of other troubles nothing is heard if it goes well in
    the end. After `silences` time-outs in a row, over turns, the next one is final at once."""

    def __init__(
        self,
        inner: Provider,
        world: World,
        *,
        fit: Fit | None = None,
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
        trouble = _Trouble()
        while True:
            failed: ProviderError | None = None
            try:
                async with aclosing(self._inner.reply(prompt)) as stream:
                    async for item in stream:
                        trouble.streamed |= not isinstance(item, Notice)
                        yield item
            except ProviderError as error:
                failed = error
            if failed is None:
                self._silent = 0
                return
            if not self._repaired(failed, trouble):
                trouble.attempts += 1
                if self._is_final(failed, trouble.attempts):
                    for notice in trouble.notices:
                        yield notice
                    raise failed
                seconds = self._seconds(failed, trouble.attempts)
                notice = _notice(failed, seconds, trouble.attempts, self._attempts)
                if failed.reason in ("rate_limit", "upstream_rate_limit"):
                    yield notice
                else:
                    trouble.notices.append(notice)
                await self._world.clock.sleep(seconds)
            if trouble.streamed:
                trouble.streamed = False
                yield Restarted()

    def _repaired(self, error: ProviderError, trouble: _Trouble) -> bool:
        if self._fit is None or trouble.repairs >= _MOST_REPAIRS:
            return False
        trouble.repairs += 1
        return self._fit.learn(error)

    def _is_final(self, error: ProviderError, attempts: int) -> bool:
        self._silent = self._silent + 1 if error.reason == "timeout" else 0
        stuck = self._silent >= self._silences
        most = min(self._attempts, self._fewer.get(error.reason, self._attempts))
        return stuck or not error.retryable or attempts >= most

    def _seconds(self, error: ProviderError, attempt: int) -> float:
        if error.retry_after is not None:
            return min(error.retry_after, LONGEST)
        return backoff(self._world, attempt, slow=is_malformed(error))


class _Trouble:
    """What went wrong for one reply so far."""

    def __init__(self) -> None:
        self.attempts = 0
        self.repairs = 0
        self.streamed = False
        self.notices: list[Notice] = []


def backoff(world: World, attempt: int, *, slow: bool) -> float:
    """2, 4, 8 … 60 seconds, or 5, 10 … 120 for answers that make no sense; up to half as much
    again, so that many clients do not come back at once."""
    first, most = (5.0, 120.0) if slow else (2.0, 60.0)
    seconds: float = min(first * 2 ** (attempt - 1), most)
    return seconds * (1 + world.chance.random() / 2)


def _notice(error: ProviderError, seconds: float, attempt: int, attempts: int) -> Notice:
    return Notice(text=f"{error} Trying again in {seconds:.0f} s ({attempt + 1} of {attempts}).")
