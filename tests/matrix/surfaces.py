"""The five surfaces, driven in the same way: start, say, stop."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from contextlib import AsyncExitStack, suppress
from typing import ClassVar

import httpx2
from acp import RequestError

from tests.durability.stage import PROGRAM
from tests.matrix.ground import CELL_SECONDS, Ground, Outcome
from tests.surfaces.acp.editor import Editor, editor
from tests.surfaces.api.serving import Serving
from tests.surfaces.cli.chat.pane import Pane
from tests.surfaces.gateway.wire import PLATFORMS, WireServer

# A gateway that has posted nothing for so long waits for the fault to end.
QUIET_SECONDS = 12.0
STOPPED = "The session has stopped"


class Surface:
    """`pid` is the process while one runs, 0 otherwise. `say` returns the answer, or what the
    person was told; it never waits longer than a cell may take."""

    name: ClassVar[str]

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.pid = 0
        # Nothing is wrong any more: an answer must come.
        self.is_healed = False

    async def start(self) -> None:
        raise NotImplementedError

    async def say(self, text: str) -> Outcome:
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError

    async def restart(self) -> None:
        await self.stop()
        await self.start()


class OneShot(Surface):
    """Each message is a process of its own, in the newest session."""

    name = "-z"
    _is_begun = False

    async def start(self) -> None:
        self._is_begun = False

    async def say(self, text: str) -> Outcome:
        words = ["-c"] if self._is_begun else []
        process = await asyncio.create_subprocess_exec(
            *self.ground.prefix, PROGRAM, *words, "--yolo", "-z", text,
            cwd=self.ground.work, env={**os.environ, **self.ground.env},
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        self.pid = process.pid
        async with asyncio.timeout(CELL_SECONDS):
            out, err = await process.communicate()
        self.pid = 0
        self._is_begun = self._is_begun or process.returncode == 0
        if process.returncode == 0:
            return Outcome(out.decode().strip(), err.decode())
        return Outcome("", err.decode().strip())

    async def stop(self) -> None:
        return


class Chat(Surface):
    """The chat in a real terminal."""

    name = "chat"

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._pane: Pane | None = None

    async def start(self) -> None:
        self._pane = await asyncio.to_thread(
            Pane, self.ground.work, self.ground.env, columns=160, rows=50
        )
        words = shlex.join([*self.ground.prefix, PROGRAM, "--yolo"])
        await asyncio.to_thread(self._pane.run, words)
        await asyncio.to_thread(self._pane.wait, self._is_ready, seconds=CELL_SECONDS)
        with suppress(IndexError):
            self.pid = self._pane.pid_of("hermes")

    @staticmethod
    def _is_ready(text: str) -> bool:
        begun = "│" in text.rpartition("❯")[0].rpartition("\n⚕")[2]
        return begun or text.count("$ ") > 1 or "error" in text

    async def say(self, text: str) -> Outcome:
        pane = self._pane
        assert pane is not None
        if self._is_shell(pane.screen()):
            return Outcome("", pane.everything().strip()[-300:])
        before = Counter(pane.everything().splitlines())
        await asyncio.to_thread(pane.say, text)
        loop = asyncio.get_running_loop()
        late, idle_since = loop.time() + CELL_SECONDS, 0.0
        while True:
            screen = pane.everything()
            added = Counter(screen.splitlines()) - before
            new = "\n".join(line for line in added if _is_said(line))
            if f"You said: {text}" in new and _is_idle(screen) and "thinking" not in new:
                # Shown is not yet stored.
                await asyncio.sleep(0.5)
                added = Counter(pane.everything().splitlines()) - before
                stopped = [line for line in added if line.startswith(STOPPED)]
                return Outcome("", stopped[0]) if stopped else Outcome(f"You said: {text}")
            if new and (_is_idle(screen) or self._is_shell(screen)):
                # A line that stays alone for a while is all that is said.
                idle_since = idle_since or loop.time()
                if loop.time() - idle_since > 2:
                    return Outcome("", new)
            else:
                idle_since = 0.0
            if loop.time() > late:
                raise TimeoutError(f"the chat hangs:\n{screen[-1500:]}")
            await asyncio.sleep(0.1)

    @staticmethod
    def _is_shell(screen: str) -> bool:
        return screen.rstrip().rpartition("\n")[2] == "$"

    async def stop(self) -> None:
        if self._pane is not None:
            await asyncio.to_thread(self._pane.close)
        self._pane, self.pid = None, 0


def _is_said(line: str) -> bool:
    """Neither the status bar nor the input."""
    return bool(line.strip()) and not line.startswith(("⚕ ", "❯", "$"))


def _is_idle(screen: str) -> bool:
    return screen.rstrip().rpartition("\n")[2].startswith("❯")


class Serve(Surface):
    """The HTTP server."""

    name = "serve"
    _server: Serving | None = None
    _headers: dict[str, str]

    async def start(self) -> None:
        self._server = Serving(self.ground.home, env=self.ground.env)
        try:
            await asyncio.to_thread(self._server.up)
        except AssertionError as error:
            raise ConnectionError(self._told()) from error
        self.pid = self._server.pid
        self._headers = self._server.headers

    async def say(self, text: str) -> Outcome:
        assert self._server is not None
        body = {"messages": [{"role": "user", "content": text}]}
        headers = {"X-Hermes-Session-Id": "matrix", **self._headers}
        try:
            async with httpx2.AsyncClient(timeout=CELL_SECONDS) as client:
                url = f"{self._server.url}/v1/chat/completions"
                response = await client.post(url, json=body, headers=headers)
        except httpx2.TransportError as error:
            return Outcome("", self._told() or f"{error!r}")
        if response.status_code == 200:
            return Outcome(response.json()["choices"][0]["message"]["content"])
        return Outcome("", response.json()["error"]["message"])

    def _told(self) -> str:
        """The last line on stderr."""
        lines = (self.ground.home.parent / "serve.err").read_text().strip().splitlines()
        return lines[-1] if lines else ""

    async def stop(self) -> None:
        if self._server is not None:
            self._server.down()
        self._server, self.pid = None, 0


class Acp(Surface):
    """An editor."""

    name = "acp"

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._stack = AsyncExitStack()
        self._session = ""
        self._editor: Editor

    async def start(self) -> None:
        before = _children()
        settings = self.ground.settings
        self._editor = await self._stack.enter_async_context(
            editor(self.ground.home, self.ground.server.url, settings=settings)
        )
        self.pid = next(iter(_children() - before), 0)
        opened = await self._editor.agent.new_session(str(self.ground.work), mcp_servers=[])
        self._session = opened.session_id

    async def say(self, text: str) -> Outcome:
        self._editor.updates.clear()
        try:
            async with asyncio.timeout(CELL_SECONDS):
                await self._editor.say(self._session, text)
        except RequestError as error:
            return Outcome("", str(error))
        except (ConnectionError, EOFError) as error:
            return Outcome("", f"the connection ended: {error!r}")
        said = self._editor.text
        wanted = f"You said: {text}"
        return Outcome(wanted) if wanted in said else Outcome("", said)

    async def stop(self) -> None:
        with suppress(Exception):
            await self._stack.aclose()
        self.pid = 0


class Gateway(Surface):
    """The gateway with a small platform."""

    name = "gateway"

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self._stack = AsyncExitStack()
        self._wire: WireServer | None = None
        self._process: Process | None = None
        self._count = 0

    async def start(self) -> None:
        if self._wire is None:
            self._wire = await self._stack.enter_async_context(WireServer().listening())
        claims = self.ground.root / "claims"
        env = {
            "HERMES_TEST_PLATFORMS": PLATFORMS,
            "HERMES_GATEWAY_LOCK_DIR": str(claims),
            "WIRE_ALLOWED_USERS": "7",
            **self._wire.env,
        }
        self._process = await asyncio.create_subprocess_exec(
            *self.ground.prefix, PROGRAM, "gateway", "run",
            cwd=self.ground.work, env={**os.environ, **self.ground.env, **env},
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        async with asyncio.timeout(CELL_SECONDS):
            await self._process.stdout.readline()
        self.pid = self._process.pid

    async def say(self, text: str) -> Outcome:
        assert self._wire is not None and self._process is not None
        before = dict(self._wire.posts)
        self._count += 1
        key, wanted = f"{id(self)}-{self._count}", f"You said: {text}"
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self._wire.say(text, key=key)
        while True:
            new = [t for id, t in self._wire.posts.items() if before.get(id) != t]
            if any(wanted in post for post in new):
                return Outcome(wanted)
            if self._process.returncode is not None:
                assert self._process.stderr is not None
                err = (await self._process.stderr.read()).decode().strip()
                return Outcome("", err or f"exit code {self._process.returncode}")
            # A post may still become the answer; a message without one stays where it is.
            patience = CELL_SECONDS - 5 if self.is_healed else QUIET_SECONDS
            if loop.time() - begun > (QUIET_SECONDS / 2 if new else patience):
                state = "acknowledged" if key in self._wire.acknowledged else "not acknowledged"
                return Outcome("", new[-1] if new else f"the message is {state}")
            await asyncio.sleep(0.05)

    async def wait_for(self, text: str) -> None:
        """Wait for the answer to a message that was acknowledged before."""
        assert self._wire is not None
        await self._wire.wait_for(f"You said: {text}", seconds=CELL_SECONDS)

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        self._process, self.pid = None, 0

    async def close(self) -> None:
        await self._stack.aclose()


def _children() -> set[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "hermes acp"], capture_output=True, text=True
    )
    return {int(line) for line in found.stdout.split()}


SURFACES: dict[str, type[Surface]] = {
    each.name: each for each in (OneShot, Chat, Serve, Acp, Gateway)
}
