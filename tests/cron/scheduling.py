"""A home with jobs, a clock that the test sets, and any number of schedulers in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from hermes.app.app import App
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import SystemClock, World
from hermes.cron.delivery import DeliveryReport, JobOrigin
from hermes.cron.record import Actor
from hermes.cron.service import OWNER, CronService
from hermes.hosting.job_sessions import make_scheduler
from hermes.journal.due_times import DueTime
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step, says
from tests.durability.stage import Stage

START = "2026-03-02T08:00:00+00:00"
CHAT = Actor(by="chat", origin=JobOrigin(platform="telegram", chat_id="7", chat_name="Home"))


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class SetClock(SystemClock):
    """The time of day is what the test says; waiting takes real time."""

    def __init__(self, start: str = START) -> None:
        self.time = at(start)

    def now(self) -> float:
        return self.time


class Recorder:
    """A delivery that remembers what it sent, each key to a target once, as a gateway does."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.state = "delivered"
        self._keys: set[tuple[str, str]] = set()

    async def deliver(
        self,
        target: str,
        text: str,
        *,
        key: str,
        files: Sequence[Path] = (),
        origin: JobOrigin | None = None,
        mirror: bool = False,
    ) -> DeliveryReport:
        if self.state == "unavailable":
            return DeliveryReport(state="unavailable", detail="the platform is down")
        if self.state == "failed":
            return DeliveryReport(state="failed", detail="no such chat")
        if (key, target) not in self._keys:
            self._keys.add((key, target))
            self.sent.append((target, text))
        return DeliveryReport(state="delivered", detail=target)

    def take(self) -> list[str]:
        """The texts since the last call."""
        texts = [text for _, text in self.sent]
        self.sent.clear()
        return texts


class CronHome:
    def __init__(self, stage: Stage, clock: SetClock, app: App) -> None:
        self.stage = stage
        self.clock = clock
        self.app = app
        self.delivery = Recorder()
        self.jobs = CronService(app.context, app.journal)
        self.scheduler, self.sessions = make_scheduler(app, self.delivery)

    async def add(self, schedule: str, prompt: str = "Report.", **fields: object) -> str:
        """The id of a new job, whose output goes to a chat."""
        given: JsonObject = {"schedule": schedule, "prompt": prompt, **fields}
        job = await self.jobs.add(given, CHAT if "deliver" not in fields else OWNER)
        return str(job["id"])

    async def at(self, moment: str | float) -> list[str]:
        """Set the clock, run what is due, and return what was delivered."""
        self.clock.time = at(moment) if isinstance(moment, str) else moment
        return await self.tick()

    async def after(self, seconds: float) -> list[str]:
        return await self.at(self.clock.time + seconds)

    async def tick(self) -> list[str]:
        await self.scheduler.tick()
        await self.scheduler.wait()
        return self.delivery.take()

    async def runs(self, job_id: str = "") -> list[DueTime]:
        """Oldest first."""
        return [*reversed(await self.jobs.runs(job_id, limit=1_000))]

    async def states(self, job_id: str = "") -> list[str]:
        return [run.state for run in await self.runs(job_id)]

    def script(self, name: str, text: str) -> None:
        folder = self.stage.home / "scripts"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    def output(self, job_id: str) -> str:
        """The newest output file."""
        return sorted((self.stage.home / "cron/output" / job_id).glob("*.md"))[-1].read_text()


def answer(text: str) -> Callable[[Request], Step]:
    return lambda _request: says(text)


@asynccontextmanager
async def cron_home(
    folder: Path, rule: Rule[Request] | None = None, *, start: str = START, settings: str = ""
) -> AsyncIterator[CronHome]:
    async with ScriptedServer(rule or answer("All is well."), strict=False) as server:
        stage = Stage(folder / "stage", server, settings=settings)
        async with joined(stage, SetClock(start)) as home:
            yield home


@asynccontextmanager
async def joined(stage: Stage, clock: SetClock) -> AsyncIterator[CronHome]:
    """Another process in the same home, as far as the journal can tell."""
    flags: dict[str, JsonValue] = {"model.default": "test", "model.provider": "custom"}
    config = load(Home(stage.home), flags=flags, env=stage.env)
    async with App(config, env=stage.env, world=World(clock=clock)) as app:
        home = CronHome(stage, clock, app)
        try:
            yield home
        finally:
            await home.scheduler.drain(0)
            await home.sessions.close()
