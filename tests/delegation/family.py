"""A home whose model plays a parent and its child sessions, each by a script of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import Record, ToolFinished
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says

Script = Sequence[Step] | Callable[[Request], Step | Awaitable[Step]]


def first_text(request: Request) -> str:
    """The message that began the conversation."""
    return next(each.text for each in request.messages if each.role == "user")


def delegate(*goals: str, **options: Any) -> Step:
    """The parent delegates: one goal, or several tasks."""
    if len(goals) == 1:
        return calls("delegate_task", goal=goals[0], **options)
    return calls("delegate_task", tasks=[{"goal": goal} for goal in goals], **options)


class Family:
    """`scripts` maps the beginning of a conversation to what the model does in it, step by step."""

    def __init__(self, root: Path, scripts: Mapping[str, Script], **flags: object) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.scripts = scripts
        self.flags = {name.replace("__", "."): value for name, value in flags.items()}
        self.server: ScriptedServer

    async def step(self, request: Request) -> Step:
        text = first_text(request)
        name = max(filter(text.startswith, self.scripts), key=len, default=None)
        if name is None:
            return says(f"Done: {text}")
        found = self.scripts[name]
        if callable(found):
            step = found(request)
            return step if isinstance(step, Step) else await step
        replies = sum(each.role == "assistant" for each in request.messages)
        return found[replies] if replies < len(found) else says("Nothing is left to do.")

    def requests_of(self, name: str) -> list[Request]:
        return [each for each in self.server.requests if first_text(each).startswith(name)]

    @property
    def env(self) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{self.server.url}/v1",
            "OPENAI_API_KEY": "k",
            "HOME": str(self.root),
            "PATH": "/usr/bin:/bin",
        }

    @asynccontextmanager
    async def app(self, world: World | None = None) -> AsyncIterator[App]:
        flags = {
            "model.default": "test",
            "model.context_length": 128_000,
            "auxiliary.title_generation.provider": "none",
            **self.flags,
        }
        config = load(Home(self.root / "home"), env=self.env, flags=flags)
        async with App(config, env=self.env, world=world or World()) as app:
            yield app

    @asynccontextmanager
    async def session(
        self, *, resume: str = "", attended: bool = False, world: World | None = None
    ) -> AsyncIterator[tuple[App, Session]]:
        async with self.app(world) as app:
            opening = SessionRequest(
                source="cli", attended=attended, cwd=str(self.project), resume=resume
            )
            yield app, await app.open(opening)


@asynccontextmanager
async def family(
    root: Path, scripts: Mapping[str, Script], **flags: object
) -> AsyncIterator[Family]:
    async with ScriptedServer(lambda request: own.step(request), window=128_000) as server:
        own = Family(root, scripts, **flags)
        own.server = server
        yield own


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 20) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await asyncio.sleep(0.01)


async def say(session: Session, text: str) -> list[Record]:
    return [record async for record in session.ask(Say(text=text))]


def delegated(records: Sequence[Record]) -> JsonObject:
    """The answer of the last `delegate_task` in these records."""
    results = [r.event.result for r in records if isinstance(r.event, ToolFinished)]
    found = [each for each in results if each.name == "delegate_task"]
    return dict(json.loads(found[-1].text))
