"""A `RunExecutor` with pool, admission and store in this process, in front of a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.app.app import App
from hermes.hosting.admission import Admission
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run
from hermes.hosting.run_executor import RunExecutor
from hermes.hosting.session_pool import SessionPool
from hermes.hosting.store import HostingStore
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step, says
from tests.durability.stage import Stage


def echo(request: Request) -> Step:
    return says(f"You said: {request.last_text}")


class Host:
    def __init__(self, stage: Stage, app: App, admission: Admission, pool: SessionPool) -> None:
        self.stage = stage
        self.app = app
        self.admission = admission
        self.pool = pool
        self.store = HostingStore(stage.home / "hosting.db")
        self.run_executor = RunExecutor(app, self.pool, admission, platform="api", store=self.store)

    def request(self, text: str, session_id: str = "", **given: Any) -> TurnRequest:
        session_id = session_id or self.run_executor.new_session_id()
        facts: dict[str, Any] = {"source": "api", "create": "if_missing", **given}
        return TurnRequest(session_id=session_id, text=text, **facts)

    async def start(
        self, text: str, session_id: str = "", *, persistent: bool = False, **given: Any
    ) -> Run:
        request = self.request(text, session_id, **given)
        run_id = self.run_executor.new_run_id(request.session_id)
        return await self.run_executor.start(run_id, request, persistent=persistent)

    async def ask(self, text: str, session_id: str = "", **given: Any) -> Run:
        """The run after its end."""
        run = await self.start(text, session_id, **given)
        return await settled(run)


async def until_no_run_is_stored(host: Host) -> None:
    """A run is deleted from the store after its readers have its end."""
    async with asyncio.timeout(30):
        while await host.store.unfinished_runs():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def settled(run: Run) -> Run:
    async with asyncio.timeout(60):
        await run.settled.wait()
    return run


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@asynccontextmanager
async def host(
    folder: Path, rule: Rule[Request] = echo, *, home: Path | None = None, **options: Any
) -> AsyncIterator[Host]:
    async with ScriptedServer(rule, strict=False) as server:
        stage = Stage(folder / "stage", server)
        stage.home = home or stage.home
        async with running(stage, **options) as found:
            yield found


@asynccontextmanager
async def running(
    stage: Stage, *, admission: Admission | None = None, **options: Any
) -> AsyncIterator[Host]:
    """`options` are those of the pool."""
    async with stage.app() as app:
        found = Host(stage, app, admission or Admission(), SessionPool(app, **options))
        try:
            yield found
        finally:
            await found.run_executor.close()
            await found.pool.close()
            await found.store.close()
