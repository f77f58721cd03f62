"""The same with a server of the official library, which speaks the newest protocol."""

from __future__ import annotations

from pathlib import Path

from hermes.core.messages import Image, Text
from hermes.core.prompt import Prompt, Reply
from hermes.mcp.calls import CallServices
from hermes.mcp.pool import ServerPool
from hermes.mcp.server import McpServer
from hermes.testing.context import ScriptedContext
from tests.mcp.conftest import Make, reply, stage, tool_of, until


async def test_a_whole_visit(make: Make, ctx: ScriptedContext, tmp_path: Path) -> None:
    async def sampler(server: McpServer, prompt: Prompt, hints: tuple[str, ...]) -> Reply:
        return reply("Paris")

    hosting = ctx.service(CallServices)
    hosting.sampler = sampler
    hosting.keep_image = lambda data, kind: str(tmp_path / f"{len(data)}.png")
    heard: list[int] = []
    servers: ServerPool = make(stage(), changed=lambda: heard.append(len(servers.list_tools())))

    async def used(name: str, **arguments: object) -> tuple[Text | Image, ...]:
        output = await ctx.call(await tool_of(servers, f"mcp_stage_{name}"), **arguments)
        assert output.origin == "mcp:stage"
        return output.parts

    assert await used("echo", text="hi") == (Text(text='{"result":"echo: hi"}'),)
    assert await used("picture") == (Image(file=str(tmp_path / "70.png"), media_type="image/png"),)
    assert await used("paint") == (Text(text="painted blue"),)
    assert await used("wonder") == (Text(text="thought: Paris"),)
    assert await used("slow", seconds=0) == (Text(text="done"),)
    assert ctx.shown == ["half way"]
    assert await used("read_resource", uri="stage://notes") == (
        Text(text="the notes of the stage"),
    )
    assert "on purpose" in str(await used("fail"))
    await used("grow")
    await until(lambda: len(heard) > 1)
    assert await used("grown") == (Text(text='{"result":"grown"}'),)
    listing = servers.cached_listing("stage")
    assert listing is not None
    assert listing.protocol >= "2026-07-28"
