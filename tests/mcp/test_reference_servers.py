"""The protocol project's own servers, used through our client."""

from __future__ import annotations

from pathlib import Path

from hermes.codec.json import decode
from hermes.core.messages import Image, Text
from hermes.core.prompt import Prompt, Reply
from hermes.core.tools import ToolOutput
from hermes.mcp.calls import CallServices
from hermes.mcp.server import McpServer
from hermes.testing.context import ScriptedContext
from tests.mcp.conftest import Make, reply, tool_of
from tests.mcp.others import needs, other, with_others

EVERYTHING, FILES = "mcp-server-everything", "mcp-server-filesystem"


def words(output: ToolOutput) -> str:
    return "\n".join(part.text for part in output.parts if isinstance(part, Text))


@needs(EVERYTHING)
async def test_the_everything_server(make: Make, ctx: ScriptedContext, tmp_path: Path) -> None:
    async def sampler(server: McpServer, prompt: Prompt, hints: tuple[str, ...]) -> Reply:
        return reply("sampled")

    hosting = ctx.service(CallServices)
    hosting.sampler = sampler
    hosting.keep_image = lambda data, kind: str(tmp_path / "kept.png")
    servers = make(McpServer(name="every", command=other(EVERYTHING), env=with_others({})))

    async def used(name: str, **arguments: object) -> ToolOutput:
        return await ctx.call(await tool_of(servers, f"mcp_every_{name}"), **arguments)

    assert words(await used("echo", message="hi")) == "Echo: hi"
    assert "5" in words(await used("get_sum", a=2, b=3))
    picture = Image(file=str(tmp_path / "kept.png"), media_type="image/png")
    assert picture in (await used("get_tiny_image")).parts
    weather = decode(dict, words(await used("get_structured_content", location="New York")))
    assert {"temperature", "conditions", "humidity"} <= set(weather)
    assert "PROBE_API_KEY" not in words(await used("get_env"))
    await used("trigger_long_running_operation", duration=0.2, steps=2)
    assert ctx.shown
    assert "sampled" in words(await used("trigger_sampling_request", prompt="hi", maxTokens=5))
    asked = await used("trigger_elicitation_request")
    assert ctx.asked
    assert not asked.failed
    assert str(tmp_path) in words(await used("get_roots_list"))
    assert "demo://" in words(await used("list_resources"))
    assert "prompt" in words(await used("list_prompts"))


@needs(FILES)
async def test_the_filesystem_server(make: Make, ctx: ScriptedContext, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    servers = make(
        McpServer(name="fs", command=other(FILES), args=(str(tmp_path),), env=with_others({}))
    )

    async def used(name: str, **arguments: object) -> ToolOutput:
        return await ctx.call(await tool_of(servers, f"mcp_fs_{name}"), **arguments)

    read = await used("read_text_file", path=str(tmp_path / "notes.txt"))
    assert "remember the milk" in words(read)
    assert read.origin == "mcp:fs"
    await used("write_file", path=str(tmp_path / "new.txt"), content="new")
    assert (tmp_path / "new.txt").read_text() == "new"
    assert (await used("read_text_file", path="/etc/passwd")).failed
