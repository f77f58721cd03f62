"""Nobody says anything: nothing is asked, nothing is booked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.clock import VirtualClock
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says

DAY_SECONDS = 86_400


LOOK_SECONDS = 600.0


class PatientClock(VirtualClock):
    """Whoever looks around many times in a second looks a few times in an hour: a day is long."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(max(LOOK_SECONDS, seconds))


async def test_an_idle_day_costs_nothing(tmp_path: Path) -> None:
    async with ScriptedServer(lambda _: says("Hello.")) as server:
        home = Home(tmp_path / "home")
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k", "HOME": str(tmp_path)}
        config = load(home, env=env, flags={"model.default": "scripted"})
        clock = PatientClock(settle_seconds=0.001)
        async with App(config, env=env, world=World(clock=clock)) as app:
            session = await app.open(
                SessionRequest(source="test", attended=True, cwd=str(tmp_path))
            )
            app.start_session_tasks(session)
            await session.send(Say(text="Hi"))
            await session.wait_until_idle()
            # The session gets its title.
            await clock.advance(LOOK_SECONDS)
            async with asyncio.timeout(60):
                while not session.transcript.title or session.transcript.open_calls:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await clock.advance(LOOK_SECONDS)
            asked = (server.received.count, server.probed.count)
            before = (await app.archive.spending(), await app.journal.read(session.id))
            await clock.advance(DAY_SECONDS)
            assert (server.received.count, server.probed.count) == asked
            assert (await app.archive.spending(), await app.journal.read(session.id)) == before
