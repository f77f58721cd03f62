"""The scheduler between due times: it sleeps, and a change of the jobs wakes it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.homes.archive_files import files_of
from tests.cron.scheduling import SetClock, cron_home, joined
from tests.durability.stage import Stage


class SleepyClock(SetClock):
    """Remembers how long the scheduler wanted to sleep, and never wakes it."""

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []
        self.napped = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.napped.set()
        await asyncio.Event().wait()


async def test_the_scheduler_sleeps_until_the_next_due_time_and_wakes_for_changes(
    tmp_path: Path,
) -> None:
    async with cron_home(tmp_path) as other:
        clock = SleepyClock()
        async with joined(other.stage, clock) as home:
            home.jobs.store.beat(succeeded=True)
            await home.add("in 90s")
            running = asyncio.ensure_future(home.scheduler.run())
            async with asyncio.timeout(30):
                await clock.napped.wait()
                # Nothing is due within the longest pause.
                assert clock.naps[-1] == 60.0
                clock.napped.clear()
                await other.add("in 20s")
                while clock.naps[-1] != 20.0:
                    await clock.napped.wait()
                    clock.napped.clear()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert [*(other.stage.home / "cron/wake").iterdir()] == []


async def test_a_heartbeat_says_that_a_scheduler_lives(tmp_path: Path) -> None:
    async with cron_home(tmp_path) as home:
        assert "No scheduler" in await home.jobs.warning()
        await home.tick()
        assert await home.jobs.warning() == ""
        home.clock.time += 181
        assert "No scheduler" in await home.jobs.warning()


async def test_runs_are_hidden_from_lists_of_sessions_and_output_from_backups(
    tmp_path: Path,
) -> None:
    async with cron_home(tmp_path) as home:
        await home.add("every 1h")
        await home.after(3_600)
        assert await home.app.archive.recent() == ()
        kept = {str(path) for path in files_of(home.stage.home)}
        assert "cron/jobs.json" in kept
        assert not any(path.startswith("cron/output") for path in kept)
        stage: Stage = home.stage
        assert "cron_" not in (await stage.run("sessions", "list")).out
        assert "cron_" in (await stage.run("sessions", "list", "--source", "cron")).out
