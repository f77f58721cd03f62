"""An app with a scripted model, and hooks that record what they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import DurableEvent, HookAnswered, Record, ToolFinished, TurnEnded
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.hooks.registry import HOOKS, Hooks
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step


class Told:
    """Everything that hooks are told, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []

    def listen(self, hooks: Hooks, *names: str) -> None:
        for name in names or HOOKS:
            hooks.add(name, self._callback(name), owner="test")

    def _callback(self, name: str) -> Callable[..., Awaitable[None]]:
        async def callback(**payload: object) -> None:
            self.calls.append((name, payload))

        return callback

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def of(self, name: str) -> list[dict[str, object]]:
        return [payload for each, payload in self.calls if each == name]


def app_at(root: Path, server: ScriptedServer, more: str = "") -> App:
    home = root / "home"
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(
        f"model: {{default: m, provider: custom, base_url: '{server.url}/v1'}}\n"
        f"terminal: {{confinement: 'off'}}\n{more}"
    )
    return App(load(Home(home), env={}), env={"PATH": "/usr/bin:/bin"}, world=World())


def project(root: Path) -> Path:
    place = root / "project"
    place.mkdir(exist_ok=True)
    return place


@asynccontextmanager
async def opened(
    root: Path,
    steps: Sequence[Step],
    prepare: Callable[[Hooks], None] = lambda _hooks: None,
    *,
    more: str = "",
    attended: bool = False,
) -> AsyncIterator[tuple[App, Session, ScriptedServer]]:
    async with ScriptedServer(steps) as server, app_at(root, server, more) as app:
        prepare(app.hooks.registry)
        opening = SessionRequest(
            source="cli", attended=attended, cwd=str(project(root)), context_files=False
        )
        yield app, await app.open(opening), server


async def say(session: Session, text: str) -> None:
    await session.send(Say(text=text))
    await session.wait_until_idle()


async def events(app: App, session: Session) -> list[DurableEvent]:
    return [_durable(record) for record in await app.journal.read(session.id)]


def _durable(record: Record) -> DurableEvent:
    return record.event  # type: ignore[return-value]


def results(found: Sequence[DurableEvent]) -> list[str]:
    return [event.result.text for event in found if isinstance(event, ToolFinished)]


def heard(found: Sequence[DurableEvent]) -> list[HookAnswered]:
    return [event for event in found if isinstance(event, HookAnswered)]


def ended(found: Sequence[DurableEvent]) -> list[str]:
    return [event.reason for event in found if isinstance(event, TurnEnded)]
