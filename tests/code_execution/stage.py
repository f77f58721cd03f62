"""A session whose model runs one script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.core.commands import Command
from hermes.core.events import Record, ToolFinished
from hermes.core.messages import ToolResult
from hermes.core.session import Session
from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.context.ground import Stage, say, stage


class ScriptStage:
    """Runs scripts; `records` is what happened."""

    def __init__(self, ground: Stage) -> None:
        self.ground = ground
        self.project = ground.project
        self.code: list[Step] = []
        self.records: list[Record] = []
        self.session: Session | None = None

    def step(self, request: Request) -> Step:
        return self.code.pop(0) if self.code else says("Done.")

    async def run(self, code: str, **options: object) -> ToolResult:
        self.code = [calls("execute_code", code=code, **options)]
        return (await self._results())[-1]

    async def _results(self) -> list[ToolResult]:
        async with self.ground.session() as (_, session):
            self.session = session
            events = session.subscribe()
            await say(session, "Go.")
            events.close()
            self.records = [record async for record in events]
        found = [record.event for record in self.records]
        return [event.result for event in found if isinstance(event, ToolFinished)]

    async def send(self, command: Command) -> None:
        assert self.session is not None
        await self.session.send(command)


@asynccontextmanager
async def script_stage(root: Path, **flags: int) -> AsyncIterator[ScriptStage]:
    scripts: list[ScriptStage] = []
    rule = lambda request: scripts[0].step(request)  # noqa: E731
    tools = ["hermes-cli", "code_execution"]
    async with stage(root, rule, window=128_000, notes=None, toolsets=tools, **flags) as ground:
        scripts.append(ScriptStage(ground))
        yield scripts[0]
