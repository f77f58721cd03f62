"""Work with the same key is executed once, also if the process crashes in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.errors import AdmissionRefused, IdempotencyConflict
from hermes.hosting.idempotency import KEY_SECONDS, Idempotency, IdempotencyClaim
from hermes.hosting.store import HostingStore
from hermes.testing.clock import VirtualClock


class Keys:
    """A store on disk; `restart` is a new process that finds it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.clock = VirtualClock()
        self.executed: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.store = HostingStore(self._path)
        self.idempotency = Idempotency(self.store, self.clock)

    async def claim(self, key: str = "k", fingerprint: str = "f") -> IdempotencyClaim:
        return await self.idempotency.claim("owner", "route", key, fingerprint)

    async def once(self) -> tuple[bytes, bool]:
        return await self.idempotency.once(await self.claim(), self.work)

    async def work(self, claim: IdempotencyClaim) -> bytes:
        run_id = await self.idempotency.reserve_run(claim, f"run {len(self.executed)}")
        self.executed.append(run_id)
        await asyncio.sleep(0)
        return run_id.encode()


@pytest.fixture
async def keys(tmp_path: Path) -> AsyncIterator[Keys]:
    found = Keys(tmp_path / "hosting.db")
    yield found
    await found.store.close()


async def test_a_repeated_request_gets_the_stored_response(keys: Keys) -> None:
    assert await keys.once() == (b"run 0", False)
    assert await keys.once() == (b"run 0", True)
    await keys.store.close()
    keys.restart()
    assert await keys.once() == (b"run 0", True)
    assert keys.executed == ["run 0"]


async def test_concurrent_requests_are_executed_once(keys: Keys) -> None:
    results = await asyncio.gather(*(keys.once() for _ in range(10)))
    assert sorted(results) == [(b"run 0", False)] + [(b"run 0", True)] * 9
    assert keys.executed == ["run 0"]


async def test_after_a_crash_the_retry_continues_the_same_run(keys: Keys) -> None:
    async def crash(claim: IdempotencyClaim) -> bytes:
        await keys.work(claim)
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await keys.idempotency.once(await keys.claim(), crash)
    await keys.store.close()
    keys.restart()
    assert (await keys.claim()).run_id == "run 0"
    assert await keys.once() == (b"run 0", False)
    assert keys.executed == ["run 0", "run 0"]


async def test_the_first_of_two_claims_decides_the_run(keys: Keys) -> None:
    claims = [await keys.claim(), await keys.claim()]
    reserved = [
        await keys.idempotency.reserve_run(claim, run_id)
        for claim, run_id in zip(claims, ("first", "second"), strict=True)
    ]
    assert reserved == ["first", "first"]


async def test_an_error_is_not_stored_and_reaches_those_who_wait(keys: Keys) -> None:
    entered = asyncio.Event()

    async def fail(claim: IdempotencyClaim) -> bytes:
        entered.set()
        await asyncio.sleep(0.05)
        raise ValueError

    claim = await keys.claim()
    first = asyncio.ensure_future(keys.idempotency.once(claim, fail))
    await entered.wait()
    second = asyncio.ensure_future(keys.once())
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(each) for each in results] == [ValueError, ValueError]
    assert await keys.once() == (b"run 0", False)


async def test_those_who_wait_for_an_interrupted_request_may_try_again(keys: Keys) -> None:
    entered = asyncio.Event()

    async def hang(claim: IdempotencyClaim) -> bytes:
        entered.set()
        await asyncio.Event().wait()
        return b""

    claim = await keys.claim()
    first = asyncio.ensure_future(keys.idempotency.once(claim, hang))
    await entered.wait()
    second = asyncio.ensure_future(keys.idempotency.once(claim, hang))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(AdmissionRefused, match="send it again"):
        await second
    assert await keys.once() == (b"run 0", False)


async def test_a_key_belongs_to_one_request_for_a_day(keys: Keys) -> None:
    await keys.once()
    with pytest.raises(IdempotencyConflict):
        await keys.claim(fingerprint="other")
    assert (await keys.idempotency.claim("other", "route", "k", "other")).run_id == ""
    await keys.idempotency.delete_expired()
    assert (await keys.claim()).run_id == "run 0"
    await keys.clock.advance(KEY_SECONDS + 1)
    await keys.idempotency.delete_expired()
    assert (await keys.claim(fingerprint="other")).run_id == ""
