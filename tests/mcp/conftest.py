"""Foreign servers for tests: the small one beside this file, started as users' servers are."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hermes.core.messages import AssistantMessage, Text, Usage
from hermes.core.prompt import Reply
from hermes.core.tools import Tool
from hermes.core.world import World
from hermes.mcp.pool import ServerEnvironment, ServerPool
from hermes.mcp.server import McpServer
from hermes.testing.context import ScriptedContext
from hermes.workspaces.local import LocalWorkspace
from tests.mcp.oauth_stage import Authority, locked_server

STAGE = Path(__file__).with_name("stage.py")
LITTLE = Path(__file__).with_name("little.py")
Make = Callable[..., ServerPool]


def stage(name: str = "stage", **more: Any) -> McpServer:
    return McpServer(name=name, command=sys.executable, args=(str(STAGE),), **more)


def little(name: str = "little", **more: Any) -> McpServer:
    """The same in no time: a server without the library, of an older protocol."""
    return McpServer(name=name, command=sys.executable, args=("-S", "-E", str(LITTLE)), **more)


def reply(text: str) -> Reply:
    """What a model answers a server that asks it."""
    message = AssistantMessage(parts=(Text(text=text),))
    return Reply(message=message, usage=Usage(), model="m", provider="p")


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Servers of one run; what they start is gone afterwards."""
    made: list[ServerPool] = []

    def servers(*wanted: McpServer, world: World | None = None, **more: Any) -> ServerPool:
        around = ServerEnvironment(
            cache=tmp_path / "cache",
            logs=tmp_path / "logs",
            tokens=tmp_path / "tokens",
            variables={**os.environ, "PROBE_API_KEY": "sk-never-shown-0000"},
            person=str(tmp_path),
            folder=str(tmp_path),
        )
        made.append(ServerPool(wanted, around, world or World(), **more))
        return made[-1]

    yield servers
    for each in made:
        await each.close()


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncIterator[ScriptedContext]:
    workspace = LocalWorkspace(str(tmp_path), state=tmp_path / "state", world=World(), env={})
    yield ScriptedContext("blue", workspace=workspace)
    await workspace.close()


async def tool_of(servers: ServerPool, name: str) -> Tool:
    """A tool by the name that sessions know it by; the server is met first."""
    if servers.uncached_servers():
        assert await servers.discover(servers.uncached_servers(), seconds=60) == {}
    return next(tool for spec, tool in servers.list_tools() if spec.name == name)


def free_port() -> int:
    """Below those that the system gives to everybody who asks for any: nobody takes it before it
    is used."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


async def until_open(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 (what is waited for happens in other processes)
            await asyncio.sleep(0.02)


def is_noted(note: Path) -> bool:
    """A server has written down that it has begun."""
    return note.exists() and note.read_text().endswith("\n")


@asynccontextmanager
async def serving_authority(**tls: str) -> AsyncIterator[Authority]:
    port = free_port()
    server, authority = locked_server(port, **tls)
    running = asyncio.ensure_future(server.serve())
    await until_open(port)
    yield authority
    server.should_exit = True
    await running


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    async with serving_authority() as authority:
        yield authority
