from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from hermes.core.effects import SignalProcess
from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput, ToolSettings
from hermes.tools.terminal import process, terminal

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


async def started(shell: ToolRunner, command: str) -> str:
    output = await shell.run(terminal, command=command, background=True)
    name: str = output.details["session_id"]
    return name


async def test_an_empty_list_says_so(shell: ToolRunner) -> None:
    output = await shell.run(process, action="list")
    assert said(output) == "No background processes."
    assert output.details == {"processes": []}


async def test_the_list_shows_state_command_and_last_line(shell: ToolRunner) -> None:
    name = await started(shell, "echo ready;\nread x")
    for _ in range(6_000):
        if "\n  ready" in (text := said(await shell.run(process, action="list"))):
            break
        await asyncio.sleep(0.01)
    first, preview = text.splitlines()
    assert first.startswith(f"{name} running · pid ")
    assert first.endswith("· echo ready; read x")
    assert preview == "  ready"


async def test_input_and_new_output(shell: ToolRunner) -> None:
    name = await started(shell, "read a; read b; echo $a$b; cat")
    sent = await shell.run(process, action="write", session_id=name, data="x\n")
    assert said(sent) == "Sent 2 characters."
    await shell.run(process, action="submit", session_id=name, data="y")
    assert said(await shell.run(process, action="close", session_id=name)) == "End of input sent."
    waited = await shell.run(process, action="wait", session_id=name)
    assert said(waited) == "xy\n[exited 0]"
    assert (waited.details["status"], waited.details["exit_code"]) == ("exited", 0)
    polled = await shell.run(process, action="poll", session_id=name)
    assert said(polled) == "[exited 0]"


async def test_waiting_has_an_end(shell: ToolRunner) -> None:
    shell.settings = ToolSettings(terminal_timeout=0.1)
    name = await started(shell, "sleep 60")
    waited = await shell.run(process, action="wait", session_id=name, timeout=500)
    assert said(waited) == "[still running after 0.1 s]"
    assert waited.details["status"] == "timeout"
    shell.stop.set()
    stopped = await shell.run(process, action="wait", session_id=name)
    assert (said(stopped), stopped.details["status"]) == ("[interrupted]", "interrupted")


async def test_the_log_tells_what_it_shows(shell: ToolRunner) -> None:
    name = await started(shell, "seq 1 300")
    await shell.run(process, action="wait", session_id=name)
    last = await shell.run(process, action="log", session_id=name)
    assert said(last).splitlines()[0] == "101"
    assert said(last).endswith("\n300\n[exited 0 · lines 101-300 of 300]")
    part = await shell.run(process, action="log", session_id=name, offset=10, limit=2)
    assert said(part) == "11\n12\n[exited 0 · lines 11-12 of 300]"
    assert part.details["total_lines"] == 300
    past = await shell.run(process, action="log", session_id=name, offset=999)
    assert said(past) == "[exited 0 · no lines]"


async def test_killing_twice_tells_the_difference(shell: ToolRunner) -> None:
    name = await started(shell, "sleep 60")
    killed = await shell.run(process, action="kill", session_id=name)
    assert (said(killed), killed.details["status"]) == (f"Killed {name}.", "killed")
    again = await shell.run(process, action="kill", session_id=name)
    assert (said(again), again.details["status"]) == (
        f"{name} had already ended.",
        "already_exited",
    )


async def test_an_unknown_name_is_told_with_the_known_ones(shell: ToolRunner) -> None:
    nothing = await shell.run(process, action="poll", session_id="proc_x")
    assert said(nothing) == "No process has the id proc_x. None was started."
    name = await started(shell, "sleep 60")
    other = await shell.run(process, action="poll", session_id="proc_x")
    assert (said(other), other.failed) == (f"No process has the id proc_x. Known: {name}.", True)


async def test_long_output_keeps_its_end(shell: ToolRunner) -> None:
    shell.settings = ToolSettings(max_bytes=20)
    name = await started(shell, "seq 1 100")
    waited = await shell.run(process, action="wait", session_id=name)
    assert said(waited).startswith("[... 271 characters omitted ...]\n")
    assert said(waited).endswith("\n99\n100\n[exited 0]")


async def test_only_the_end_of_a_process_is_an_effect_that_is_known_beforehand(
    shell: ToolRunner,
) -> None:
    for action in ("list", "poll", "log", "wait", "write", "submit"):
        assert shell.effects(process, action=action, session_id="p") == []
    for action in ("close", "kill"):
        assert shell.effects(process, action=action, session_id="p") == [
            SignalProcess(process_id="p", action=cast(Any, action))
        ]
