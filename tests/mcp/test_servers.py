"""Foreign servers as real child processes: met, used, lost, mended and let go."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from hermes.codec.json import decode
from hermes.config.extension_settings import McpSamplingSettings, McpToolSettings
from hermes.core.effects import CallServer
from hermes.core.errors import ToolError
from hermes.core.messages import Image, Text, user_says
from hermes.core.prompt import Prompt, Reply
from hermes.core.tools import ToolOutput
from hermes.core.world import World
from hermes.mcp.calls import CallServices
from hermes.mcp.pool import ServerPool
from hermes.mcp.server import McpServer, NeedsLogin, Unreachable
from hermes.mcp.transport import ChildRegistry
from hermes.testing.clock import VirtualClock
from hermes.testing.context import ScriptedContext
from tests.mcp.conftest import Make, is_noted, little, reply, tool_of, until
from tests.timing import LeapingClock, leap


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def text_of(output: ToolOutput) -> str:
    return "".join(part.text for part in output.parts if isinstance(part, Text))


async def test_a_tool_answers_with_its_origin_and_declares_its_effect(
    make: Make, ctx: ScriptedContext
) -> None:
    tool = await tool_of(make(little()), "mcp_little_echo")
    output = await ctx.call(tool, text="hi")
    assert (output.parts, output.failed, output.origin) == (
        (Text(text="echo: hi"),),
        False,
        "mcp:little",
    )
    effect = CallServer(server="little", tool="echo", arguments='{"text":"hi"}', changes=False)
    assert list(tool.effects(ctx.workspace, {"text": "hi"})) == [effect]
    assert tool.repeat == "safe"


async def test_an_error_of_the_tool_reaches_the_model(make: Make, ctx: ScriptedContext) -> None:
    output = await ctx.call(await tool_of(make(little()), "mcp_little_fail"))
    assert output.failed
    assert "on purpose" in str(output.parts)
    assert output.origin == "mcp:little"


async def test_the_child_sees_no_secret_of_ours(make: Make, ctx: ScriptedContext) -> None:
    tool = await tool_of(make(little(env={"OWN": "given"})), "mcp_little_environment")
    output = await ctx.call(tool)
    lines = [line.partition("=") for line in text_of(output).splitlines()]
    seen = {name: value for name, _, value in lines}
    assert seen["OWN"] == "given"
    assert "PATH" in seen
    assert "PROBE_API_KEY" not in seen
    extra = {"OWN", "PATH", "HOME", "USER", "LOGNAME", "LANG", "SHELL", "TERM", "TMPDIR"}
    assert {name for name in seen if not name.startswith(("LC_", "XDG_"))} <= extra


async def test_known_servers_are_offered_without_being_started(make: Make) -> None:
    first = make(little())
    await first.discover(("little",), seconds=60)
    again = make(little())
    assert again.uncached_servers() == ()
    assert {spec.name for spec, _ in again.list_tools()} >= {
        "mcp_little_echo",
        "mcp_little_read_resource",
    }
    assert not again.link("little").is_open
    other = make(little(env={"A": "B"}))
    assert other.uncached_servers() == ("little",)


async def test_settings_choose_the_tools(make: Make) -> None:
    await make(little()).discover(("little",), seconds=60)

    def names(tools: McpToolSettings) -> list[str]:
        return [spec.name for spec, _ in make(little(tools=tools)).list_tools()]

    assert names(McpToolSettings(include=("e*",), resources=False, prompts=False)) == [
        "mcp_little_echo",
        "mcp_little_environment",
    ]
    some = names(McpToolSettings(include=("echo",), exclude=("echo",), resources=False))
    assert some == ["mcp_little_echo", "mcp_little_list_prompts", "mcp_little_get_prompt"]
    assert "mcp_little_echo" not in names(McpToolSettings(exclude=("ec?o",)))


async def test_resources_and_prompts_can_be_used(make: Make, ctx: ScriptedContext) -> None:
    servers = make(little())
    listed = await ctx.call(await tool_of(servers, "mcp_little_list_resources"))
    assert "little://notes" in str(listed.parts)
    read = await ctx.call(await tool_of(servers, "mcp_little_read_resource"), uri="little://notes")
    assert read.parts == (Text(text="the notes"),)
    assert "greet" in str((await ctx.call(await tool_of(servers, "mcp_little_list_prompts"))).parts)
    prompt = await tool_of(servers, "mcp_little_get_prompt")
    got = await ctx.call(prompt, name="greet", arguments={"name": "Ada"})
    assert "Greet Ada kindly." in str(got.parts)
    missing = await ctx.call(
        await tool_of(servers, "mcp_little_read_resource"), uri="little://gone"
    )
    assert missing.failed


async def test_a_picture_becomes_a_picture_and_else_a_file(
    make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    tool = await tool_of(make(little()), "mcp_little_picture")
    (part,) = (await ctx.call(tool)).parts
    assert isinstance(part, Text)
    assert part.text.startswith("[image/png")
    hosting = ctx.service(CallServices)
    hosting.keep_image = lambda data, kind: str(tmp_path / f"{len(data)}.png")
    (part,) = (await ctx.call(tool)).parts
    assert part == Image(file=str(tmp_path / "70.png"), media_type="image/png")


async def test_progress_is_shown(make: Make, ctx: ScriptedContext) -> None:
    tool = await tool_of(make(little()), "mcp_little_slow")
    await ctx.call(tool, seconds=0)
    assert ctx.shown == ["half way"]


async def test_a_server_may_ask_the_person(make: Make, ctx: ScriptedContext) -> None:
    output = await ctx.call(await tool_of(make(little()), "mcp_little_paint"))
    assert output.parts == (Text(text="painted blue"),)
    assert "little asks: Which colour?" in ctx.asked[0][0]


async def test_nobody_there_means_no_colour(make: Make, ctx: ScriptedContext) -> None:
    tool = await tool_of(make(little()), "mcp_little_paint")
    await ctx.call(tool)
    assert (await ctx.call(tool)).failed


async def test_a_server_may_ask_our_model_within_its_limits(
    make: Make, ctx: ScriptedContext
) -> None:
    asked: list[Prompt] = []

    async def sampler(server: McpServer, prompt: Prompt, hints: tuple[str, ...]) -> Reply:
        asked.append(prompt)
        return reply("Paris")

    ctx.service(CallServices).sampler = sampler
    limits = McpSamplingSettings(max_rpm=2, max_tokens_cap=500)
    tool = await tool_of(make(little(sampling=limits)), "mcp_little_wonder")
    assert (await ctx.call(tool)).parts == (Text(text="thought: Paris"),)
    assert asked[0].max_tokens == 500
    assert asked[0].messages == (user_says("What is the capital of France?", origin="mcp:little"),)
    await ctx.call(tool)
    third = await ctx.call(tool)
    assert third.failed
    assert len(asked) == 2
    assert "in a minute" in str(third.parts)


async def test_without_a_sampler_no_model_is_asked(make: Make, ctx: ScriptedContext) -> None:
    output = await ctx.call(await tool_of(make(little()), "mcp_little_wonder"))
    assert "disabled" in str(output.parts)
    quiet = make(little("quiet", sampling=McpSamplingSettings(enabled=False)))
    assert (await ctx.call(await tool_of(quiet, "mcp_quiet_wonder"))).failed


async def test_new_tools_of_a_running_server_are_heard_of(make: Make, ctx: ScriptedContext) -> None:
    heard: list[int] = []
    servers: ServerPool = make(little(), changed=lambda: heard.append(len(servers.list_tools())))
    await ctx.call(await tool_of(servers, "mcp_little_grow"))
    await until(lambda: len(heard) > 1)
    assert heard[-1] == heard[0] + 1
    grown = await ctx.call(await tool_of(servers, "mcp_little_grown"))
    assert "grown" in str(grown.parts)


async def test_a_child_that_is_killed_mid_call_is_reported_and_replaced(
    make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    servers, note = make(little()), tmp_path / "note"
    tool = await tool_of(servers, "mcp_little_slow")
    call = asyncio.ensure_future(ctx.call(tool, seconds=60, note=str(note)))
    await until(lambda: is_noted(note))
    os.kill(int(note.read_text().split()[1]), signal.SIGKILL)
    output = await call
    assert output.failed
    assert "outcome is unknown" in str(output.parts)
    again = await ctx.call(await tool_of(servers, "mcp_little_echo"), text="back")
    assert again.parts == (Text(text="echo: back"),)


async def test_a_cancelled_call_is_cancelled_over_there(
    make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    servers, note = make(little()), tmp_path / "note"
    tool = await tool_of(servers, "mcp_little_slow")
    call = asyncio.ensure_future(ctx.call(tool, seconds=60, note=str(note)))
    await until(lambda: is_noted(note))
    call.cancel()
    await until(lambda: "cancelled" in note.read_text())
    assert not (await ctx.call(await tool_of(servers, "mcp_little_echo"), text="x")).failed


async def test_a_call_that_takes_too_long_is_given_up(make: Make, ctx: ScriptedContext) -> None:
    tool = await tool_of(make(little(timeout=0.5)), "mcp_little_slow")
    output = await ctx.call(tool, seconds=60)
    answer = decode(dict, text_of(output))
    assert answer == {"error": "MCP tool slow timed out after 0.5s", "retryable": True}


async def test_after_three_failures_a_server_rests(
    make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    clock = VirtualClock()
    servers = make(little(timeout=20), world=World(clock))
    tool = await tool_of(servers, "mcp_little_slow")
    for number in range(3):
        note = tmp_path / str(number)
        call = asyncio.ensure_future(ctx.call(tool, seconds=600, note=str(note)))
        await until(partial(is_noted, note))
        leap(20)
        await call
    resting = await ctx.call(tool, seconds=0)
    assert "unavailable (3 failures), retry in 60s" in str(resting.parts)
    await clock.advance(61)
    assert not (await ctx.call(tool, seconds=0)).failed


async def test_what_a_server_has_started_goes_with_it(
    make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    servers, note = make(little()), tmp_path / "note"
    await ctx.call(await tool_of(servers, "mcp_little_breed"), note=str(note))
    grandchild = int(note.read_text())
    assert alive(grandchild)
    await servers.close()
    await until(lambda: not alive(grandchild))
    assert list((tmp_path / "cache" / "children").iterdir()) == []
    assert "the little one is there" in (tmp_path / "logs" / "little.log").read_text()


async def test_children_of_a_killed_owner_are_ended_by_the_next(tmp_path: Path) -> None:
    births = ChildRegistry(tmp_path)
    orphan = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    births.record(orphan.pid)
    file = tmp_path / str(orphan.pid)
    assert births.kill_orphans() == 0
    file.write_bytes(file.read_bytes().replace(b'"owner_began":"', b'"owner_began":"9'))
    assert births.kill_orphans() == 1
    assert await orphan.wait() == -signal.SIGKILL
    assert not file.exists()


async def test_a_command_that_is_not_there_is_named(make: Make) -> None:
    servers = make(McpServer(name="ghost", command="no-such-program"))
    faults = await servers.discover(("ghost",), seconds=60)
    assert faults == {
        "ghost": "MCP server ghost: command 'no-such-program' was not found; install it."
    }
    with pytest.raises(Unreachable, match="is reconnecting, try again in 1s"):
        await servers.link("ghost").listing()


async def test_a_program_that_is_no_server_is_not_waited_for_for_ever(make: Make) -> None:
    servers = make(McpServer(name="mute", command="sleep", args=("60",), connect_timeout=0.5))
    faults = await servers.discover(("mute",), seconds=60)
    assert faults == {"mute": "MCP server mute did not answer within 0.5s"}


async def test_a_server_that_rests_is_let_go(make: Make, ctx: ScriptedContext) -> None:
    servers = make(little(idle_timeout_seconds=0.3))
    await ctx.call(await tool_of(servers, "mcp_little_echo"), text="x")
    await until(lambda: not servers.link("little").is_open)
    assert not (await ctx.call(await tool_of(servers, "mcp_little_echo"), text="y")).failed


async def test_a_server_that_gives_no_sign_of_life_is_let_go_before_a_call_needs_it(
    make: Make, ctx: ScriptedContext
) -> None:
    clock = LeapingClock()
    servers = make(little(keepalive_interval=20), world=World(clock))
    echo = await tool_of(servers, "mcp_little_echo")
    await ctx.call(echo, text="x")
    await ctx.call(await tool_of(servers, "mcp_little_freeze"))
    while servers.link("little").is_open:
        clock.leap(20)
        await asyncio.sleep(0.01)
    assert not (await ctx.call(echo, text="y")).failed


async def test_other_limits_leave_a_connection_as_it_is(make: Make, ctx: ScriptedContext) -> None:
    servers = make(little())
    slow = await tool_of(servers, "mcp_little_slow")
    await ctx.call(slow, seconds=0)
    link = servers.link("little")
    limited = little(
        timeout=0.3, tools=McpToolSettings(include=("slow",), resources=False, prompts=False)
    )
    assert await servers.replace([limited]) == ([], ["little"], [])
    assert servers.link("little") is link
    assert link.is_open
    assert [spec.name for spec, _ in servers.list_tools()] == ["mcp_little_slow"]
    assert "timed out after 0.3s" in text_of(await ctx.call(slow, seconds=60))


async def test_a_call_under_way_ends_before_its_server_is_removed(
    make: Make, ctx: ScriptedContext, tmp_path: Path
) -> None:
    servers, note = make(little()), tmp_path / "note"
    slow = await tool_of(servers, "mcp_little_slow")
    call = asyncio.ensure_future(ctx.call(slow, seconds=0.5, note=str(note)))
    await until(lambda: is_noted(note))
    assert await servers.replace([]) == ([], [], ["little"])
    assert (await call).parts == (Text(text="done"),)
    with pytest.raises(ToolError, match="no MCP server 'little'"):
        await ctx.call(slow, seconds=0)


async def test_a_server_that_is_reached_in_another_way_starts_anew(
    make: Make, ctx: ScriptedContext
) -> None:
    servers = make(little())
    await ctx.call(await tool_of(servers, "mcp_little_echo"), text="x")
    link = servers.link("little")
    assert await servers.replace([little(env={"A": "B"})]) == ([], ["little"], [])
    assert not link.is_open
    seen = await ctx.call(await tool_of(servers, "mcp_little_environment"))
    assert "A=B" in text_of(seen)


async def test_a_server_that_wants_a_login_says_so(make: Make) -> None:
    servers = make(McpServer(name="locked", url="http://127.0.0.1:9/mcp", auth="oauth"))
    with pytest.raises(NeedsLogin, match="hermes mcp login locked"):
        await servers.link("locked").listing()


async def test_descriptions_that_give_orders_are_kept_from_the_model(make: Make) -> None:
    servers = make(little(), scan=lambda text: ("orders", True) if "again" in text else ("", False))
    await servers.discover(("little",), seconds=60)
    spec = next(spec for spec, _ in servers.list_tools() if spec.name == "mcp_little_echo")
    assert spec.description.strip() == "[unverified: orders]"
