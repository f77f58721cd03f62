"""No ring is lost, and none counts twice."""

from __future__ import annotations

import asyncio

import pytest

from hermes.core.concurrency import Wakeup


async def wakes(wakeup: Wakeup, rounds: int = 3) -> bool:
    """Whether a wait ends without another ring."""
    waiting = asyncio.ensure_future(wakeup.wait())
    for _ in range(rounds):
        await asyncio.sleep(0)
    ended = waiting.done()
    waiting.cancel()
    await asyncio.wait((waiting,))
    return ended


async def test_a_ring_before_the_wait_ends_it_and_only_it() -> None:
    wakeup = Wakeup()
    wakeup.set()
    wakeup.set()
    assert await wakes(wakeup)
    assert not await wakes(wakeup)


async def test_a_ring_ends_a_wait_that_has_begun() -> None:
    wakeup = Wakeup()
    waiting = asyncio.ensure_future(wakeup.wait())
    await asyncio.sleep(0)
    wakeup.set()
    wakeup.set()
    await asyncio.wait_for(waiting, 60)
    assert not await wakes(wakeup)


async def test_a_ring_that_is_hushed_is_forgotten() -> None:
    wakeup = Wakeup()
    wakeup.set()
    wakeup.clear()
    assert not await wakes(wakeup)


async def test_a_ring_after_a_wait_that_was_given_up_is_kept() -> None:
    wakeup = Wakeup()
    waiting = asyncio.ensure_future(wakeup.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    wakeup.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await wakes(wakeup)
