"""Tells a story: a home that records, a scripted model, and people who say and do things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from hermes.app.app import App
from hermes.core.commands import Answer, Command, Interrupt, Say
from hermes.core.events import ApprovalAsked, Event, QuestionAsked
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import SystemClock, World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step, says
from hermes.testing.wires.table import WireName
from tests.durability.kills import end_processes
from tests.durability.observing import eventually
from tests.durability.stage import SECONDS, Stage, finished

KEY = "key-of-a-test-5b1f"
RECORDED = "sessions: {record: true}\n"


class FastClock(SystemClock):
    """Waits before another try are short."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))


class Home(Stage):
    """A home that records, with keys that look like some."""

    def __init__(self, root: Path, server: ScriptedServer, *, settings: str = "") -> None:
        super().__init__(root, server)
        own = f'providers: {{replies: {{base_url: "{server.url}/v1", api_key: {KEY}, '
        own += "discover_models: false, api_mode: codex_responses}}\n"
        self.home.joinpath("config.yaml").write_text(own + RECORDED + settings)

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}


class RecordedSession(NamedTuple):
    """A session that was recorded, and the home that it lies in."""

    stage: Stage
    session_id: str


Play = Callable[[Stage, WireName], Awaitable[str]]


class Story(NamedTuple):
    name: str
    model: Iterable[Step] | Rule[Request]
    play: Play
    wire: WireName = "chat"
    settings: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.wire})"


@asynccontextmanager
async def told(story: Story, root: Path) -> AsyncIterator[RecordedSession]:
    """The story has happened; its model is gone inside the block."""
    async with ScriptedServer(story.model, strict=False) as server:
        stage = Home(root, server, settings=story.settings)
        for name, text in FILES.items():
            stage.work.joinpath(name).write_text(text)
        try:
            session_id = await story.play(stage, story.wire)
        finally:
            end_processes(stage.home)
    yield RecordedSession(stage, session_id)


FILES = {"a.txt": "alpha\nbeta\n", "b.txt": "gamma\n", "c.txt": "delta é 🙂\n"}

Happens = Callable[[Event], Command | None]


def nothing(_event: Event) -> Command | None:
    return None


def talk(
    *words: str | Command,
    meanwhile: Happens = nothing,
    attended: bool = False,
    asks: bool = False,
    clock: SystemClock | None = None,
    attends: bool = False,
) -> Play:
    """One process in which all this is said, each when the turn before it has ended."""

    async def play(stage: Stage, wire: WireName) -> str:
        async with stage.app(wire, asks=asks, world=World(clock=clock)) as app:
            session = await app.open(
                SessionRequest(source="cli", attended=attended, cwd=str(stage.work))
            )
            await converse(app, session, words, meanwhile, attends=attends)
            return session.id

    return play


async def converse(
    app: App,
    session: Session,
    words: Iterable[str | Command],
    meanwhile: Happens = nothing,
    *,
    attends: bool = False,
) -> None:
    if attends:
        app.start_session_tasks(session)
    events = session.subscribe()

    async def watch() -> None:
        async for record in events:
            if (command := meanwhile(record.event)) is not None:
                # People take a moment; a question is open for answers only after it was shown.
                await asyncio.sleep(0.02 if isinstance(command, Answer) else 0)
                await session.send(command)

    watching = asyncio.ensure_future(watch())
    try:
        async with asyncio.timeout(SECONDS):
            for each in words:
                await session.send(Say(text=each) if isinstance(each, str) else each)
                await session.wait_until_idle()
    finally:
        events.close()
        await watching


def once(kind: type[Event], command: Command) -> Happens:
    """When the first event of this kind is seen."""
    left = [command]
    return lambda event: left.pop() if left and isinstance(event, kind) else None


def answering(*texts: str) -> Happens:
    """Questions and approvals get these answers, one after the other."""
    left = list(texts)

    def meanwhile(event: Event) -> Command | None:
        if isinstance(event, ApprovalAsked | QuestionAsked) and left:
            return Answer(id=event.id, text=left.pop(0))
        return None

    return meanwhile


def killed(*points: str, first: str = "Do it.", then: str = "Go on.") -> Play:
    """The program dies at each of these points in turn, and the last run of it does not."""

    async def play(stage: Stage, wire: WireName) -> str:
        session_id = ""
        for number, point in enumerate((*points, "")):
            words = then if number else first
            await stage.ask(words, resume=session_id, wire=wire, kill_at=point)
            (session_id,) = await stage.session_ids()
        return session_id

    return play


def in_processes(*words: str) -> Play:
    """Each of these in a process of its own."""

    async def play(stage: Stage, wire: WireName) -> str:
        session_id = ""
        for each in words:
            ended = await stage.ask(each, resume=session_id, wire=wire)
            assert ended.code == 0, ended
            (session_id,) = await stage.session_ids()
        return session_id

    return play


async def signalled(stage: Stage, wire: WireName) -> str:
    """Ctrl+C while a command runs, and another turn after it."""
    process = await stage.start(*stage.asking("Do it.", wire=wire))
    await eventually(stage.work.joinpath("begun").exists)
    process.send_signal(2)
    await finished(process)
    (session_id,) = await stage.session_ids()
    await stage.ask("Go on.", resume=session_id, wire=wire)
    return session_id


async def notified(stage: Stage, wire: WireName) -> str:
    """A background process ends while the session is attended, which begins a turn."""
    async with stage.app(wire) as app:
        session = await app.open(SessionRequest(source="cli", attended=True, cwd=str(stage.work)))
        app.start_session_tasks(session)
        await session.send(Say(text="Start it."))
        await session.wait_until_idle()
        stage.work.joinpath("go").touch()
        await eventually(lambda: len(session.transcript.turn_starts) > 1 and not session.busy)
        return session.id


async def forked(stage: Stage, wire: WireName) -> str:
    """A second branch that goes on with a model of another wire."""
    parent = await talk("First.", "Second.")(stage, wire)
    async with stage.app("messages") as app:
        branch = await app.archive.fork(parent, at=6)
        session = await app.open(SessionRequest(source="cli", attended=False, resume=branch))
        await converse(app, session, ["Another way."])
        return branch


def until_told(step: Step) -> Rule[Request]:
    """A model that does this until it is told to go on, or has results."""

    def rule(request: Request) -> Step:
        done = request.results or request.last_text.endswith(("Go on.", "[no output]"))
        return says("Going on.") if done else step

    return rule


async def stopped_when_silent(stage: Stage, wire: WireName) -> str:
    async with stage.app(wire) as app:
        session = await app.open(SessionRequest(source="cli", attended=False, cwd=str(stage.work)))
        await session.send(Say(text="Tell."))
        await stage.server.received.reaches(1)
        await session.send(Interrupt())
        await session.wait_until_idle()
        await converse(app, session, ["Go on."])
        return session.id
