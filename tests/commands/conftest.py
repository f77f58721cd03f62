"""A real app on a home of its own, answered by the offline assistant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.commands.catalogue import COMMANDS
from hermes.commands.registry import BackgroundWork, CommandRegistry
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World


class Talk:
    """A place where slash commands can be given."""

    def __init__(self, app: App, session: Session) -> None:
        self.app = app
        self.session = session
        self.registry = CommandRegistry(COMMANDS, "cli")
        self.background_work: BackgroundWork | None = None

    async def say(self, text: str) -> None:
        await self.session.send(Say(text=text))
        await self.session.wait_until_idle()


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    config = load(Home(tmp_path / "home"), flags={"model.provider": "offline"}, env={})
    async with App(config, env={}, world=World()) as app:
        opening = SessionRequest(source="cli", attended=False, cwd=str(tmp_path))
        yield Talk(app, await app.open(opening))
