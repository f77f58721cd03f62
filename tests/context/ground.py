"""A project, a home and a scripted model with a small window, for tests of what models see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.context.summary import INSTRUCTIONS
from hermes.core.commands import Say
from hermes.core.events import Compacted, Record, TurnEnded
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import SystemClock, World
from hermes.memory.tools import FLUSH
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails, says

FOR_SUMMARIES = INSTRUCTIONS.partition(".")[0]

Rule = Callable[[Request], Step]


def is_for_summary(request: Request) -> bool:
    return any(said.role == "system" and FOR_SUMMARIES in said.text for said in request.messages)


def is_for_memory(request: Request) -> bool:
    return any(said.role == "system" and said.text == FLUSH for said in request.messages)


class Hasty(SystemClock):
    """Waits before another try are short."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))


class Stage:
    """`rule` plays the model; summaries are written by `notes`, None fails them."""

    def __init__(self, root: Path, server: ScriptedServer, window: int, flags: JsonObject) -> None:
        self.root = root
        self.server = server
        self.window = window
        self.flags = flags
        self.project = root / "project"
        self.project.mkdir(parents=True, exist_ok=True)

    @property
    def chats(self) -> list[Request]:
        requests = self.server.requests
        return [each for each in requests if not (is_for_summary(each) or is_for_memory(each))]

    @property
    def summaries(self) -> list[Request]:
        return [request for request in self.server.requests if is_for_summary(request)]

    @asynccontextmanager
    async def app(self, world: World | None = None) -> AsyncIterator[App]:
        env = {
            "OPENAI_BASE_URL": f"{self.server.url}/v1",
            "OPENAI_API_KEY": "k",
            "HOME": str(self.root),
            "PATH": "/usr/bin:/bin",
        }
        flags = {"model.default": "test", "model.context_length": self.window, **self.flags}
        config = load(Home(self.root / "home"), env=env, flags=flags)
        async with App(config, env=env, world=world or World(clock=Hasty())) as app:
            yield app

    @asynccontextmanager
    async def session(
        self, resume: str = "", world: World | None = None
    ) -> AsyncIterator[tuple[App, Session]]:
        async with self.app(world) as app:
            opening = SessionRequest(
                source="test", attended=False, cwd=str(self.project), resume=resume
            )
            yield app, await app.open(opening)

    def file(self, name: str, lines: int, width: int = 60) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = (f"{name} row {n} ".ljust(width, ".") for n in range(1, lines + 1))
        path.write_text("\n".join(rows) + "\n")
        return path


@asynccontextmanager
async def stage(
    root: Path,
    rule: Rule,
    *,
    window: int,
    notes: Callable[[Request], str] | None = lambda _: "Goal: the work at hand.",
    **flags: object,
) -> AsyncIterator[Stage]:
    def answer(request: Request) -> Step:
        if is_for_memory(request):
            return says("Nothing to save.") if notes is not None else fails(500)
        if not is_for_summary(request):
            return rule(request)
        return says(notes(request)) if notes is not None else fails(500)

    given = {name.replace("__", "."): value for name, value in flags.items()}
    async with ScriptedServer(answer, window=window) as server:
        yield Stage(root, server, window, given)


async def say(session: Session, text: str) -> TurnEnded:
    """How the turn ended that these words began."""
    events = session.subscribe()
    await session.send(Say(text=text))
    ended: list[TurnEnded] = []
    async for record in events:
        if isinstance(record.event, TurnEnded):
            ended.append(record.event)
            break
    events.close()
    await session.wait_until_idle()
    return ended[0]


def compactions(records: tuple[Record, ...]) -> list[Compacted]:
    return [record.event for record in records if isinstance(record.event, Compacted)]
