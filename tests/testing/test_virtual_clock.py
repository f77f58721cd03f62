"""Time that stands still until it is told to move."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.testing.clock import START, VirtualClock, seeded_world


async def test_time_stands_still_until_it_is_moved() -> None:
    clock = VirtualClock(1000.0)
    assert (clock.now(), clock.monotonic()) == (1000.0, 0.0)
    await clock.advance(90)
    assert (clock.now(), clock.monotonic()) == (1090.0, 90.0)


async def test_a_sleeper_wakes_at_its_time_and_not_before() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(10))
    await clock.advance(9.999)
    assert not task.done()
    assert clock.next_wake == pytest.approx(0.001)
    await clock.advance(0.001)
    assert task.done()
    assert clock.next_wake is None


@given(waits=st.lists(st.floats(0, 1000), max_size=20), step=st.floats(1, 2000))
def test_sleepers_wake_in_the_order_of_their_times(waits: list[float], step: float) -> None:
    async def run() -> list[tuple[float, int]]:
        clock = VirtualClock()
        woken: list[tuple[float, int]] = []

        async def nap(number: int, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((clock.monotonic(), number))

        async with asyncio.TaskGroup() as group:
            for number, seconds in enumerate(waits):
                group.create_task(nap(number, seconds))
            while clock.monotonic() < 1000:
                await clock.advance(step)
        return woken

    expected = sorted((seconds, number) for number, seconds in enumerate(waits))
    assert asyncio.run(run()) == expected


async def test_a_job_that_sleeps_again_runs_as_often_as_there_is_time() -> None:
    clock = VirtualClock()
    ticks: list[float] = []

    async def every_minute() -> None:
        while True:
            await clock.sleep(60)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(every_minute())
    await clock.advance(200)
    assert ticks == [60, 120, 180]
    await clock.advance(86_400 * 31)
    assert len(ticks) == 44_643
    task.cancel()


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    task.cancel()
    await clock.settle()
    assert clock.next_wake is None


async def test_run_until_moves_time_as_far_as_needed() -> None:
    clock = VirtualClock()

    async def a_long_day() -> str:
        for _ in range(24):
            await clock.sleep(3600)
        return "evening"

    assert await clock.run_until(a_long_day()) == "evening"
    assert clock.monotonic() == 86_400


async def test_run_until_passes_errors_on() -> None:
    async def fails() -> None:
        await clock.sleep(1)
        raise LookupError

    clock = VirtualClock()
    with pytest.raises(LookupError):
        await clock.run_until(fails())


async def test_run_until_cancels_what_it_runs_when_it_is_cancelled() -> None:
    clock = VirtualClock()
    ended = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(clock.run_until(stubborn()))
    await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_work_in_threads_is_waited_for_when_settling_takes_real_time() -> None:
    clock = VirtualClock(settle_seconds=0.1)
    order: list[str] = []

    async def work() -> None:
        await asyncio.to_thread(time.sleep, 0.02)
        order.append("thread")
        await clock.sleep(5)
        order.append("slept")

    async def limit() -> None:
        await clock.sleep(10)
        order.append("limit")

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        group.create_task(limit())
        await clock.advance(20)
    assert order == ["thread", "slept", "limit"]


def test_a_seeded_world_does_the_same_things_again() -> None:
    one, two, other = seeded_world(7), seeded_world(7), seeded_world(8)
    ids = [[world.new_id("turn") for _ in range(3)] for world in (one, two, other)]
    assert ids[0] == ids[1] != ids[2]
    assert one.clock.now() == START
    assert one.new_session_id() == two.new_session_id()


def test_a_seeded_world_takes_the_clock_and_kill_points_it_is_given() -> None:
    clock, reached = VirtualClock(5), list[str]()
    world = seeded_world("seed", clock=clock, kill_point=reached.append)
    world.kill_point("here")
    assert world.clock is clock
    assert reached == ["here"]
