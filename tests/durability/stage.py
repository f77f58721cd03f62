"""A home, a folder to work in, a scripted model and the real program, all for one case."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hermes.app.app import App
from hermes.codec.values import JsonValue
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.events import Record, TurnEnded
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.server import ScriptedServer
from hermes.testing.wires.table import WireName
from tests.durability.observing import LOOK_SECONDS

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).with_name("hermes"))
SECONDS = 240
KEY = "sk-test-0123456789"

# The provider under which each wire format is reached; see `Stage.env` and `Stage.settings`.
PROVIDERS: dict[WireName, str] = {
    "chat": "custom",
    "messages": "anthropic",
    "responses": "replies",
}


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Stage:
    def __init__(self, root: Path, server: ScriptedServer, *, settings: str = "") -> None:
        self.home = root / "home"
        self.work = root / "work"
        self.server = server
        self.work.mkdir(parents=True)
        self.home.mkdir(mode=0o700)
        own = f'providers: {{replies: {{base_url: "{server.url}/v1", api_key: {KEY}, '
        own += "discover_models: false, api_mode: codex_responses}}\n"
        self.home.joinpath("config.yaml").write_text(own + settings)

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "HOME": str(self.work.parent),
            "HERMES_HOME": str(self.home),
            "OPENAI_BASE_URL": f"{self.server.url}/v1",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": KEY,
        }

    async def start(self, *words: str, kill_at: str = "") -> Process:
        """The program with these words."""
        return await self.command(PROGRAM, *words, kill_at=kill_at)

    async def hold(self, *words: str, kill_at: str = "") -> Process:
        """A process that stays in a session; see `holder`."""
        module = ("-m", "tests.durability.holder")
        return await self.command(sys.executable, *module, *words, kill_at=kill_at)

    async def command(self, *words: str, kill_at: str = "") -> Process:
        """Any program in the folder and the environment of the stage."""
        env = self.env
        if kill_at:
            env |= {"HERMES_TESTING": "1", "HERMES_KILL_AT": kill_at}
        return await asyncio.create_subprocess_exec(
            *words,
            cwd=self.work,
            env=env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )

    async def run(self, *words: str, kill_at: str = "") -> Ended:
        return await finished(await self.start(*words, kill_at=kill_at))

    async def ask(
        self, prompt: str, *, resume: str = "", wire: WireName = "chat", kill_at: str = ""
    ) -> Ended:
        """One turn of `hermes -z`, nobody asked for approval."""
        return await self.run(*self.asking(prompt, resume=resume, wire=wire), kill_at=kill_at)

    def asking(self, prompt: str, *, resume: str = "", wire: WireName = "chat") -> list[str]:
        words = ["-m", "test", "--provider", PROVIDERS[wire], "--yolo", "-z", prompt]
        return [*words, "--resume", resume] if resume else words

    def app(
        self, wire: WireName = "chat", *, asks: bool = False, world: World | None = None
    ) -> App:
        """The same home inside this process; `asks` for approval where the run would."""
        flags: dict[str, JsonValue] = {
            "model.default": "test",
            "model.provider": PROVIDERS[wire],
            "approvals.mode": "manual" if asks else "off",
        }
        config = load(Home(self.home), flags=flags, env=self.env)
        return App(config, env=self.env, world=world or World())

    async def say(self, session_id: str, text: str, wire: WireName) -> None:
        """One more turn in the session, from inside this process."""
        async with self.app(wire) as app:
            session = await app.open(
                SessionRequest(source="cli", attended=False, resume=session_id)
            )
            await session.send(Say(text=text))
            await session.wait_until_idle()

    async def session_ids(self) -> list[str]:
        async with self.app() as app:
            return [info.id for info in await app.archive.recent()]

    async def records(self, session_id: str) -> tuple[Record, ...]:
        async with self.app() as app:
            return await app.archive.records(session_id)

    async def until_ended(self, session_id: str, *, turns: int) -> None:
        """Wait until so many turns of the session have ended, whoever runs them."""
        async with asyncio.timeout(SECONDS):
            while True:
                records = await self.records(session_id)
                if sum(isinstance(record.event, TurnEnded) for record in records) >= turns:
                    return
                await asyncio.sleep(LOOK_SECONDS)


async def line(process: Process, *, err: bool = False, seconds: float = SECONDS) -> str:
    """The next line that it writes."""
    stream = process.stderr if err else process.stdout
    assert stream is not None
    async with asyncio.timeout(seconds):
        return (await stream.readline()).decode().rstrip("\n")


async def finished(process: Process, seconds: float = SECONDS) -> Ended:
    """How it ended. One that does not end, or that nobody waits for any more, is killed, so that no
    test leaves anything behind."""
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate(b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def killed_after(process: Process, seconds: float) -> Ended:
    """How it ended, if not by itself, then by SIGKILL at that moment. Not by `process.kill()`: when
    the process is just ending, that takes its exit code away from whoever waits for it."""
    handle = os.pidfd_open(process.pid)
    kill = partial(signal.pidfd_send_signal, handle, signal.SIGKILL)
    timer = asyncio.get_running_loop().call_later(seconds, _if_there, kill)
    try:
        return await finished(process)
    finally:
        timer.cancel()
        os.close(handle)


def _if_there(kill: Callable[[], None]) -> None:
    with suppress(ProcessLookupError):
        kill()
