"""The real program in a home of its own, with a scripted model and a small platform."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.surfaces.gateway.wire import PLATFORMS, WireServer

HERMES = Path(sys.executable).with_name("hermes")
ROOT = Path(__file__).parents[3]
SECONDS = 60


class Machine:
    """A home with a scripted model and a platform, and programs that run in it."""

    def __init__(self, folder: Path, wire: WireServer) -> None:
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.wire = wire
        self.model = ScriptedServer(self.answer, strict=False)
        self.processes: list[asyncio.subprocess.Process] = []
        # Cleared, the model keeps turns waiting.
        self.answers = asyncio.Event()
        self.answers.set()
        self._was_asked = asyncio.Event()
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "HERMES_HOME": str(self.home),
            "HERMES_TESTING": "1",
            "HERMES_TEST_PLATFORMS": PLATFORMS,
            "HERMES_GATEWAY_LOCK_DIR": str(folder / "claims"),
            "WIRE_ALLOWED_USERS": "7",
            **wire.env,
        }
        self._settings = ""

    def use_model(self) -> None:
        url = f"{self.model.url}/v1"
        self.add(f'model: {{default: m, provider: custom, base_url: "{url}"}}')

    def add(self, line: str) -> None:
        """Add a line to the settings."""
        self._settings += f"{line}\n"
        (self.home / "config.yaml").write_text(self._settings)
        (self.home / "config.yaml").chmod(0o600)

    async def start(self, *arguments: str, **env: str) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            str(HERMES),
            *arguments,
            env={**self.env, **env},
            cwd=self.home.parent,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    async def gateway(self, *arguments: str, **env: str) -> asyncio.subprocess.Process:
        """A gateway that is ready."""
        process = await self.start("gateway", "run", *arguments, **env)
        assert process.stdout is not None
        async with asyncio.timeout(SECONDS):
            line = (await process.stdout.readline()).decode()
        if not line.startswith("The gateway is running"):
            _, errors = await process.communicate()
            raise AssertionError(f"{line}{errors.decode()}")
        return process

    async def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        process = await self.start(*arguments, **env)
        async with asyncio.timeout(SECONDS):
            out, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, out.decode(), errors.decode()

    async def answer(self, request: Request) -> Step:
        """What the model says: it quotes the last message, or keeps its peace."""
        self._was_asked.set()
        if is_turn(request):
            await self.answers.wait()
        said = [message.text for message in request.messages if message.role == "user"][-1]
        return says(f"You said: {said.splitlines()[-1]}")

    async def asked(self) -> None:
        """Wait until the model was asked something."""
        async with asyncio.timeout(SECONDS):
            await self._was_asked.wait()

    def turns(self) -> list[Request]:
        """The requests of turns, without those for titles and other side work."""
        return [request for request in self.model.requests if is_turn(request)]

    async def is_draining(self) -> bool:
        return bool((await self.state())["gateway_state"] == "draining")

    async def state(self) -> dict[str, Any]:
        code, out, errors = await self.run("gateway", "status", "--json")
        assert code in (0, 3), errors
        found: dict[str, Any] = json.loads(out)
        return found


def is_turn(request: Request) -> bool:
    return "tools" in request.body


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again until it is so: other processes cannot wake us."""
    async with asyncio.timeout(SECONDS):
        while not await check():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(SECONDS):
        return await process.wait()
