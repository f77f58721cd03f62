"""A crowd that goes on in one instant leaves room for others in the event loop."""

from __future__ import annotations

import asyncio

from hermes.core.concurrency import Pacer


async def test_few_pass_in_each_round_in_the_order_in_which_they_came() -> None:
    pacer = Pacer(at_once=2)
    passed: list[int] = []
    rounds: list[int] = []

    async def walk(n: int) -> None:
        await pacer.wait()
        passed.append(n)

    walkers = [asyncio.ensure_future(walk(n)) for n in range(7)]
    while len(passed) < 7:
        before = len(passed)
        await asyncio.sleep(0)
        rounds.append(len(passed) - before)
    assert passed == list(range(7)) and max(rounds) <= 2
    await asyncio.gather(*walkers)


async def test_whoever_gives_up_waiting_takes_nobodys_place() -> None:
    pacer = Pacer(at_once=1)
    await pacer.wait()
    passing, leaving, staying = (asyncio.ensure_future(pacer.wait()) for _ in range(3))
    await asyncio.sleep(0)
    leaving.cancel()
    async with asyncio.timeout(60):
        await asyncio.gather(passing, staying)
    assert leaving.cancelled()


async def test_one_alone_never_waits() -> None:
    pacer = Pacer(at_once=1)
    for _ in range(5):
        task = asyncio.ensure_future(pacer.wait())
        await asyncio.sleep(0)
        assert task.done()
        await asyncio.sleep(0)
