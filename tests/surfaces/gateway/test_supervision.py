"""Background work: restarts, growing pauses, giving up, and one timer for all."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from hermes.surfaces.gateway.state_file import TaskState
from hermes.surfaces.gateway.supervision import Supervisor, Timers
from hermes.testing.clock import VirtualClock


class Reports:
    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    def __call__(self, name: str, state: TaskState | None) -> None:
        self.all.append((name, state.state if state else "well"))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_a_task_that_fails_is_started_again_with_growing_pauses(clock: VirtualClock) -> None:
    starts: list[float] = []

    async def work() -> None:
        starts.append(clock.monotonic())
        if len(starts) < 4:
            raise RuntimeError("no")

    reports = Reports()
    supervisor = Supervisor(clock, reports)
    supervisor.start("job", work)
    await clock.advance(100)
    assert starts == [0, 2, 6, 14]
    assert [state for _, state in reports.all] == ["restarting"] * 3 + ["well"]
    await supervisor.close()


async def test_ten_rapid_failures_end_a_task(clock: VirtualClock) -> None:
    starts: list[float] = []

    async def work() -> None:
        starts.append(clock.monotonic())
        raise RuntimeError("no")

    reports = Reports()
    supervisor = Supervisor(clock, reports)
    supervisor.start("job", work)
    await clock.advance(3_600)
    assert len(starts) == 10
    assert max(after - before for before, after in pairwise(starts)) == 60
    assert reports.all[-1] == ("job", "dead")
    await supervisor.close()


async def test_a_failure_after_a_long_run_starts_a_new_count(clock: VirtualClock) -> None:
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        await clock.sleep(61)
        raise RuntimeError("no")

    supervisor = Supervisor(clock, Reports())
    supervisor.start("job", work)
    await clock.advance(63 * 30)
    assert starts >= 29
    await supervisor.close()


async def test_jobs_that_are_due_together_need_one_wake_up(clock: VirtualClock) -> None:
    runs: list[tuple[str, float]] = []
    timers = Timers(clock, Reports())

    def job(name: str) -> None:
        async def work() -> None:
            runs.append((name, clock.monotonic()))

        timers.every(name, 30 if name == "a" else 60, work)

    job("a")
    job("b")
    task = asyncio.ensure_future(timers.run())
    await clock.advance(120)
    assert runs == [("a", 30), ("a", 60), ("b", 60), ("a", 90), ("a", 120), ("b", 120)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_job_that_still_runs_is_not_started_again(clock: VirtualClock) -> None:
    runs = 0
    timers = Timers(clock, Reports())

    async def slow() -> None:
        nonlocal runs
        runs += 1
        await clock.sleep(100)

    timers.every("slow", 10, slow)
    task = asyncio.ensure_future(timers.run())
    await clock.advance(105)
    assert runs == 1
    await clock.advance(20)
    assert runs == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_job_that_keeps_failing_is_given_up_alone(clock: VirtualClock) -> None:
    good = bad = 0
    reports = Reports()
    timers = Timers(clock, reports)

    async def fine() -> None:
        nonlocal good
        good += 1

    async def broken() -> None:
        nonlocal bad
        bad += 1
        raise RuntimeError("no")

    timers.every("fine", 30, fine)
    timers.every("broken", 30, broken)
    task = asyncio.ensure_future(timers.run())
    await clock.advance(3_600)
    assert (good, bad) == (120, 10)
    assert reports.all[-1] == ("broken", "dead")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_job_can_be_added_while_the_timer_sleeps(clock: VirtualClock) -> None:
    runs: list[float] = []
    timers = Timers(clock, Reports())
    task = asyncio.ensure_future(timers.run())
    await clock.advance(5)

    async def work() -> None:
        runs.append(clock.monotonic())

    timers.every("late", 10, work)
    await clock.advance(20)
    assert runs == [15, 25]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
