"""Servers that run elsewhere: streamable HTTP and the older stream of events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.codec.values import replace
from hermes.core.messages import Text
from hermes.core.world import World
from hermes.mcp.server import McpServer, ServerFault
from hermes.testing.clock import VirtualClock
from hermes.testing.context import ScriptedContext
from tests.mcp.conftest import STAGE, Make, free_port, is_noted, tool_of, until, until_open
from tests.mcp.forgetful import Forgetful


@asynccontextmanager
async def served(way: str, port: int) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(STAGE), way, str(port)), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await until_open(port)
        yield
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(("way", "path"), [("--http", "mcp"), ("--sse", "sse")])
async def test_tools_are_used_over_http(
    make: Make, ctx: ScriptedContext, way: str, path: str
) -> None:
    port = free_port()
    server = McpServer(
        name="far",
        url=f"http://127.0.0.1:{port}/{path}",
        transport="sse" if path == "sse" else "http",
        timeout=60,
    )
    servers = make(server)
    async with served(way, port):
        echo = await tool_of(servers, "mcp_far_echo")
        output = await ctx.call(echo, text="hi")
        assert output.parts == (Text(text='{"result":"echo: hi"}'),)
        assert output.origin == "mcp:far"
        assert (await ctx.call(await tool_of(servers, "mcp_far_fail"))).failed


@pytest.mark.parametrize(("way", "path"), [("--http", "mcp"), ("--sse", "sse")])
async def test_calls_over_http_are_given_up_and_cancelled(
    make: Make, ctx: ScriptedContext, tmp_path: Path, way: str, path: str
) -> None:
    port = free_port()
    server = McpServer(
        name="far",
        url=f"http://127.0.0.1:{port}/{path}",
        transport="sse" if path == "sse" else "http",
        timeout=1,
    )
    async with served(way, port):
        slow = await tool_of(make(server), "mcp_far_slow")
        late = await ctx.call(slow, seconds=60)
        assert "timed out after 1s" in str(late.parts)
        patient = make(replace(server, timeout=60))
        slow = await tool_of(patient, "mcp_far_slow")
        note = tmp_path / "note"
        call = asyncio.ensure_future(ctx.call(slow, seconds=60, note=str(note)))
        await until(lambda: is_noted(note))
        call.cancel()
        await until(lambda: "cancelled" in note.read_text())
        assert not (await ctx.call(await tool_of(patient, "mcp_far_echo"), text="x")).failed


async def test_a_server_that_comes_back_is_used_again(make: Make, ctx: ScriptedContext) -> None:
    port, clock = free_port(), VirtualClock()
    server = McpServer(
        name="far", url=f"http://127.0.0.1:{port}/mcp", timeout=60, connect_timeout=60
    )
    servers = make(server, world=World(clock))
    async with served("--http", port):
        echo = await tool_of(servers, "mcp_far_echo")
        assert not (await ctx.call(echo, text="1")).failed
    gone = await ctx.call(echo, text="2")
    assert gone.failed
    assert gone.origin == "workspace"
    async with served("--http", port):
        await clock.advance(400)
        assert not (await ctx.call(echo, text="3")).failed


async def test_an_address_where_nobody_is_is_reported(make: Make) -> None:
    port = free_port()
    server = McpServer(name="far", url=f"http://127.0.0.1:{port}/mcp", connect_timeout=60)
    clock = VirtualClock(settle_seconds=0.05)
    link = make(server, world=World(clock)).link("far")
    with pytest.raises(ServerFault, match="MCP server far cannot be reached"):
        await clock.run_until(link.listing())


async def test_a_session_that_the_server_forgot_is_begun_anew_and_the_call_runs_once(
    make: Make, ctx: ScriptedContext
) -> None:
    port = free_port()
    far = Forgetful(port)
    running = asyncio.ensure_future(far.server.serve())
    try:
        await until_open(port)
        servers = make(McpServer(name="far", url=far.url, timeout=60))
        count = await tool_of(servers, "mcp_far_count")
        assert (await ctx.call(count)).parts == (Text(text="1"),)
        met = far.greetings
        far.forget()
        assert (await ctx.call(count)).parts == (Text(text="2"),)
        assert (far.calls, far.greetings) == (2, met + 1)
        await servers.close()
    finally:
        far.server.should_exit = True
        await running
