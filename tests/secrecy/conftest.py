"""An app with a scripted model, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import Record
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step


class Here:
    """A session with its app, its model and what was shown of it."""

    def __init__(self, app: App, session: Session, server: ScriptedServer, work: Path) -> None:
        self.app = app
        self.session = session
        self.server = server
        self.work = work
        self.records: list[Record] = []

    async def say(self, text: str) -> list[Record]:
        """What was shown of the turn."""
        events = self.session.subscribe()
        await self.session.send(Say(text=text))
        await self.session.wait_until_idle()
        events.close()
        shown = [record async for record in events]
        self.records += shown
        return shown

    @property
    def sent(self) -> str:
        """The newest request."""
        return self.server.requests[-1].raw.decode()


Open = Callable[..., Awaitable[Here]]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Open]:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:

        async def opened(
            steps: Iterable[Step] | Rule[Request],
            *,
            env: Mapping[str, str] | None = None,
            settings: Mapping[str, object] | None = None,
            source: str = "cli",
            attended: bool = False,
        ) -> Here:
            server = await stack.enter_async_context(ScriptedServer(steps, strict=False))
            variables = {
                "PATH": "/usr/bin:/bin",
                "HOME": str(tmp_path),
                "OPENAI_BASE_URL": f"{server.url}/v1",
                "OPENAI_API_KEY": "k",
                **(env or {}),
            }
            flags = {"model.default": "test", "model.provider": "custom", **(settings or {})}
            app = App(load(Home(home), flags=flags, env=variables), env=variables, world=World())
            await stack.enter_async_context(app)
            opening = SessionRequest(source=source, attended=attended, cwd=str(work))
            return Here(app, await app.open(opening), server, work)

        yield opened
