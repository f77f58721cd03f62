"""A session over the real journal and a real folder, with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.core.commands import Command, Say
from hermes.core.events import Event, Record, ReplyAdded, SessionOpened, ToolFinished, TurnEnded
from hermes.core.messages import Message, ToolResult
from hermes.core.metering import Budgeting, Metered
from hermes.core.ports import Meter, Policy, Provider
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.recorder import Recorder, Subscription
from hermes.core.session import Session
from hermes.core.session_deps import SessionDeps, TurnLimits
from hermes.core.tools import Tool
from hermes.core.transcript import fold
from hermes.core.usage_check import Cost
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.policy.rules import PolicySettings, SessionPolicy
from hermes.testing.provider import ScriptedProvider
from hermes.workspaces.local import LocalWorkspace


class Tools:
    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    def load(self, name: str) -> Tool | None:
        return self._tools.get(name)


class Run:
    """What a test drives. Set `model`, `tools`, `limits` before the first words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = World()
        self.model: Provider = ScriptedProvider()
        self.tools: tuple[Tool, ...] = ()
        self.limits = TurnLimits()
        self.budgeting = Budgeting()
        self.cost: Cost = lambda usage: None
        self.max_output: int | None = None
        self.attended = False
        self.approval_seconds = 5.0
        self.settings = PolicySettings()
        self.journal = SqliteJournal(folder / "home" / "hermes.db", self.world)
        self.seen: list[Record] = []
        self._session: Session | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def session(self) -> Session:
        if self._session is None:
            self._session = self._open()
            self._reader = asyncio.ensure_future(self._watch(self._session.subscribe()))
        return self._session

    async def say(self, text: str) -> list[Event]:
        """Everything that happened until nothing was left to do."""
        session, start = self.session, len(self.seen)
        await session.send(Say(text=text))
        await session.wait_until_idle()
        for _ in range(5):
            await asyncio.sleep(0)
        return [record.event for record in self.seen[start:]]

    async def send(self, command: Command) -> None:
        await self.session.send(command)

    async def wait_for(self, kind: type[Event]) -> Event:
        """The next event of this kind, also if it has come already."""
        async with asyncio.timeout(60):
            while True:
                for record in self.seen:
                    if isinstance(record.event, kind):
                        return record.event
                await asyncio.sleep(0.005)

    async def messages_in_journal(self) -> list[Message]:
        return fold(await self.journal.read(self.session.id)).messages

    def results(self) -> list[ToolResult]:
        return [r.event.result for r in self.seen if isinstance(r.event, ToolFinished)]

    def text(self) -> str:
        replies = [r.event for r in self.seen if isinstance(r.event, ReplyAdded)]
        return replies[-1].message.text

    def ended(self) -> TurnEnded:
        return [r.event for r in self.seen if isinstance(r.event, TurnEnded)][-1]

    async def reopen(self) -> Session:
        """The same session as another process would find it."""
        assert self._session is not None
        session_id = self._session.id
        await self._session.close()
        return await self.reopen_id(session_id)

    async def reopen_id(self, session_id: str) -> Session:
        """A session of the journal as another process would find it."""
        lease = await self.journal.acquire(session_id)
        transcript = fold(await self.journal.read(session_id))
        recorder = Recorder(
            self.journal, session_id, self.world, lease=lease, transcript=transcript
        )
        self._session = Session(self._parts(), recorder)
        self._reader = asyncio.ensure_future(self._watch(self._session.subscribe()))
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self._reader is not None:
            await self._reader
        await self.journal.close()

    def policy(self) -> Policy:
        return SessionPolicy(
            self.settings,
            root=str(self.project),
            home=str(self.folder / "person"),
            state=str(self.folder / "home"),
            keep=lambda _: None,
        )

    def _parts(self) -> SessionDeps:
        return SessionDeps(
            journal=self.journal,
            connect=self._connect,
            budgeting=lambda: self.budgeting,
            view=lambda transcript: Prompt(
                system="You are tested.", messages=transcript.seen, tools=Tools(self.tools).specs
            ),
            toolbox=Tools(self.tools),
            workspace=LocalWorkspace(
                str(self.project),
                state=self.folder / "state",
                world=self.world,
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder / "person")},
            ),
            policy=self.policy(),
            world=self.world,
            attended=self.attended,
            approval_seconds=self.approval_seconds,
        )

    def _connect(self, model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
        metered = Metered(
            self.model,
            meter,
            world=self.world,
            model=model,
            provider=provider,
            cost=self.cost,
            max_output=self.max_output,
        )
        return metered, self.limits

    def _open(self) -> Session:
        opened = SessionOpened(
            source="test", cwd=str(self.project), model="m", provider="p", system="You are tested."
        )
        recorder = Recorder(self.journal, self.world.new_session_id(), self.world, opening=opened)
        return Session(self._parts(), recorder)

    async def _watch(self, events: Subscription) -> None:
        async for record in events:
            self.seen.append(record)


@asynccontextmanager
async def run_in(folder: Path) -> AsyncIterator[Run]:
    for name in ("project", "home", "person"):
        (folder / name).mkdir()
    made = Run(folder)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    async with run_in(tmp_path) as made:
        yield made
