"""Several schedulers, changes of the clock and sudden deaths: each due time runs exactly once."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.events import MessageReceived, TurnEnded
from hermes.core.world import World
from hermes.cron.service import OWNER, CronService
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.cron.worker import FLAGS, SharedClock
from tests.durability.stage import Stage

ZONE = ZoneInfo("Europe/Berlin")
# Minute, hour, day of the week (None for any) of a cron expression, or the seconds of an interval.
Pattern = tuple[frozenset[int], frozenset[int], frozenset[int] | None]
WAIT_SECONDS = 30.0


def cron_text(minutes: list[int], hours: list[int], days: list[int] | None) -> str:
    return f"{_words(minutes)} {_words(hours)} * * {_words(days) if days else '*'}"


def _words(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def expected_runs(pattern: Pattern, start: float, end: float) -> Iterator[float]:
    """Walk over every minute with a clock on the wall: a skipped time runs when the clock has
    jumped, a repeated one only the first time. Knows nothing of the code under test."""
    minutes, hours, days = pattern
    moment = datetime.fromtimestamp(start, UTC).replace(second=0)
    before = moment.astimezone(ZONE)
    while moment.timestamp() < end:
        moment += timedelta(minutes=1)
        local = moment.astimezone(ZONE)
        shown = [local] if not local.fold else []
        gap = (local.replace(tzinfo=None) - before.replace(tzinfo=None)) // timedelta(minutes=1)
        shown += [local - timedelta(minutes=n) for n in range(1, gap)]
        before = local
        if any(
            each.minute in minutes
            and each.hour in hours
            and (days is None or each.isoweekday() % 7 in days)
            for each in shown
        ):
            yield moment.timestamp()


def schedules(count: int, chance: random.Random) -> Iterator[tuple[str, Pattern | int]]:
    """Some jobs at the hours of the change, the others anywhere."""
    fixed = ([0], [2], None), ([30], [2], None), ([15, 45], [1, 2, 3], None), ([0], [3], [0, 1])
    for n in range(count):
        if n % 5 == 4:
            hours = chance.choice((2, 3, 6, 7))
            yield f"every {hours}h", hours * 3_600
            continue
        if n < len(fixed):
            minutes, hours_, days = fixed[n]
        else:
            minutes = [chance.choice((0, 5, 30))]
            hours_ = sorted(chance.sample(range(24), chance.choice((1, 2, 4))))
            days = None
        pattern = (frozenset(minutes), frozenset(hours_), frozenset(days) if days else None)
        yield cron_text(minutes, hours_, days), pattern


class Workers:
    """Processes with schedulers that are killed and started again."""

    def __init__(self, stage: Stage, clock: Path, deliveries: Path) -> None:
        self._stage = stage
        self._arguments = (str(stage.home), str(clock), str(deliveries))
        self.processes: list[Process] = []
        self.kills = 0

    async def start(self) -> None:
        module = ("-m", "tests.cron.worker")
        process = await self._stage.command(sys.executable, *module, *self._arguments)
        self.processes.append(process)

    async def kill(self, chance: random.Random) -> None:
        """Kill one, wherever it is, and start another."""
        await asyncio.sleep(chance.random() * 0.05)
        process = self.processes.pop(chance.randrange(len(self.processes)))
        process.kill()
        await process.communicate()
        self.kills += 1
        await self.start()

    async def end(self) -> None:
        for process in self.processes:
            process.kill()
            await process.communicate()


def ended_runs(home: Path) -> set[tuple[str, float]]:
    query = "SELECT job, due_at FROM due_times WHERE ended_at IS NOT NULL"
    try:
        with closing(sqlite3.connect(f"file:{home / 'hermes.db'}?mode=ro", uri=True)) as db:
            return set(db.execute(query))
    except sqlite3.OperationalError:
        # The first process has not created it yet.
        return set()


async def check_each_due_time_runs_once(
    folder: Path, start: float, *, days: int, jobs: int, kills: float, seed: int
) -> int:
    """Returns how many processes were killed."""
    chance = random.Random(seed)
    end = start + days * 86_400
    wanted: dict[tuple[str, float], None] = {}
    async with ScriptedServer(lambda _: says("Done."), strict=False) as server:
        stage = Stage(folder / "stage", server, settings="timezone: Europe/Berlin\n")
        clock_file, deliveries = folder / "clock", folder / "deliveries"
        clock = SharedClock(clock_file, start)
        config = load(Home(stage.home), flags=FLAGS, env=stage.env)
        async with App(config, env=stage.env, world=World(clock=clock)) as app:
            service = CronService(app.context, app.journal)
            for text, pattern in schedules(jobs, chance):
                fields = {"schedule": text, "prompt": "Go.", "deliver": "telegram:1"}
                job = (await service.add(fields, OWNER))["id"]
                if isinstance(pattern, int):
                    due = [start + n * pattern for n in range(1, int(end - start) // pattern + 1)]
                else:
                    due = [*expected_runs(pattern, start, end)]
                wanted |= {(job, at): None for at in due if at <= end}
        workers = Workers(stage, clock_file, deliveries)
        for _ in range(3):
            await workers.start()
        try:
            await _let_time_pass(stage.home, clock, wanted, workers, chance, kills)
        finally:
            await workers.end()
        await _check(stage, wanted, set(deliveries.read_text().split()))
    return workers.kills


async def _let_time_pass(
    home: Path,
    clock: SharedClock,
    wanted: dict[tuple[str, float], None],
    workers: Workers,
    chance: random.Random,
    kills: float,
) -> None:
    for moment in sorted({at for _, at in wanted}):
        clock.set(moment)
        if chance.random() < kills:
            await workers.kill(chance)
        due = {key for key in wanted if key[1] <= moment}
        async with asyncio.timeout(WAIT_SECONDS):
            while not due <= ended_runs(home):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def _check(stage: Stage, wanted: dict[tuple[str, float], None], delivered: set[str]) -> None:
    config = load(Home(stage.home), flags=FLAGS, env=stage.env)
    async with App(config, env=stage.env, world=World()) as app:
        runs = await CronService(app.context, app.journal).runs(limit=100_000)
        assert Counter((run.job, run.due_at) for run in runs) == Counter(wanted.keys())
        assert {run.state for run in runs} == {"completed"}
        for run in runs:
            events = [record.event for record in await app.archive.records(run.session_id)]
            assert sum(isinstance(event, MessageReceived) for event in events) == 1
            assert [e.reason for e in events if isinstance(e, TurnEnded)] == ["done"]
    keys = {f"cron:{job}:{at:.0f}" for job, at in wanted}
    # A gateway sends each key once.
    assert delivered == keys


SPRING = datetime(2026, 3, 28, 20, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, 20, tzinfo=UTC)


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
async def test_three_processes_run_each_due_time_once_over_a_change_of_the_clock(
    tmp_path: Path, start: datetime
) -> None:
    killed = await check_each_due_time_runs_once(
        tmp_path, start.timestamp(), days=1, jobs=6, kills=0.15, seed=4
    )
    assert killed


@pytest.mark.slow
@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
async def test_fifty_jobs_in_three_processes_over_a_week_with_random_kills(
    tmp_path: Path, start: datetime
) -> None:
    begin = (start - timedelta(days=3)).timestamp()
    killed = await check_each_due_time_runs_once(
        tmp_path, begin, days=7, jobs=50, kills=0.1, seed=7
    )
    assert killed >= 10
