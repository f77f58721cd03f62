from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from hermes.codec.json import encode
from hermes.core.effects import RunCommand
from hermes.core.messages import joined_text
from hermes.core.tools import ToolOutput, ToolSettings
from hermes.tools.search import search_files
from hermes.tools.terminal import process, terminal
from tests.durability.observing import eventually
from tests.timing import leap

if TYPE_CHECKING:
    from tests.tools.conftest import ToolRunner


def said(output: ToolOutput) -> str:
    return joined_text(output.parts)


async def test_output_is_the_answer(shell: ToolRunner) -> None:
    output = await shell.run(terminal, command="echo hello")
    assert said(output) == "hello"
    assert output.details == {
        "command": "echo hello",
        "exit_code": 0,
        "cwd": str(shell.root),
    }
    assert not output.failed


async def test_a_silent_success_says_so(shell: ToolRunner) -> None:
    assert said(await shell.run(terminal, command="true")) == "[no output]"


@pytest.mark.parametrize(
    ("command", "text", "failed"),
    [
        ("echo a; exit 3", "a\n[exit 3]", True),
        ("echo a | grep b", "[exit 1 · grep found nothing]", False),
        ("nosuch", "bash: line 1: nosuch: command not found\n[exit 127 · command not found]", True),
    ],
)
async def test_a_bad_exit_code_is_explained(
    shell: ToolRunner, command: str, text: str, failed: bool
) -> None:
    output = await shell.run(terminal, command=command)
    assert (said(output), output.failed) == (text, failed)


async def test_a_new_folder_is_told(shell: ToolRunner) -> None:
    (shell.root / "sub").mkdir()
    moved = await shell.run(terminal, command="cd sub")
    assert said(moved) == f"[cwd is now {shell.root}/sub]"
    assert moved.details["cwd"] == f"{shell.root}/sub"
    assert said(await shell.run(terminal, command="pwd")) == f"{shell.root}/sub"


async def test_a_folder_for_one_call(shell: ToolRunner) -> None:
    (shell.root / "sub").mkdir()
    output = await shell.run(terminal, command="pwd", workdir="sub")
    assert said(output) == f"{shell.root}/sub"
    assert said(await shell.run(terminal, command="pwd")) == str(shell.root)


async def test_time_runs_out_with_what_there_is(shell: ToolRunner) -> None:
    running = asyncio.create_task(
        shell.run(terminal, command="echo a; touch up; sleep 60", timeout=20)
    )
    await eventually((shell.root / "up").exists)
    leap(20)
    output = await running
    assert said(output) == "a\n[timed out after 20 s]"
    assert output.failed
    assert output.details["exit_code"] == 124


async def test_stop_ends_the_command(shell: ToolRunner) -> None:
    running = asyncio.create_task(shell.run(terminal, command="echo a; touch up; sleep 60"))
    while not (shell.root / "up").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    shell.stop.set()
    output = await running
    assert said(output) == "a\n[Command interrupted]"
    assert output.details["exit_code"] == 130


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"command": "  "}, "empty"),
        ({"command": "nohup x"}, "background=true"),
        ({"command": "make &"}, "background=true"),
        ({"command": "npm run dev"}, "background=true"),
        ({"command": "echo p | sudo -S ls"}, "sudo"),
        ({"command": "echo p | sudo -S ls", "background": True}, "sudo"),
        ({"command": "ls", "workdir": "a;b"}, "not allowed"),
        ({"command": "ls", "workdir": "nowhere"}, "no folder"),
        ({"command": "ls", "timeout": 601}, "at most 600 seconds"),
        ({"command": "ls", "timeout": 0}, "more than 0"),
    ],
)
async def test_what_cannot_run_is_refused_with_advice(
    shell: ToolRunner, arguments: dict[str, Any], words: str
) -> None:
    output = await shell.run(terminal, **arguments)
    assert output.failed
    assert words in said(output)


async def test_too_much_output_is_cut(shell: ToolRunner) -> None:
    shell.settings = ToolSettings(max_lines=10, max_line_length=20)
    output = await shell.run(terminal, command=f"seq 1 100; echo {'x' * 50}")
    lines = said(output).split("\n")
    assert lines[:5] == ["1", "2", "3", "4", "[... 91 lines omitted ...]"]
    assert lines[-1] == "x" * 20 + " [... 30 more]"
    assert len(lines) == 11


async def test_a_background_command_gets_a_name(shell: ToolRunner) -> None:
    output = await shell.run(terminal, command="sleep 60", background=True, notify_on_complete=True)
    (info,) = await shell.workspace.processes.list()
    assert said(output) == f"Started {info.id} (pid {info.pid}). You will be notified when it ends."
    assert output.details == {
        "command": "sleep 60",
        "session_id": info.id,
        "pid": info.pid,
        "exit_code": 0,
        "cwd": str(shell.root),
        "notify_on_complete": True,
    }


async def test_the_effect_is_named_beforehand(shell: ToolRunner) -> None:
    root = str(shell.root)
    assert shell.effects(terminal, command="ls") == [RunCommand(script="ls", cwd=root)]
    assert shell.effects(terminal, command="x", workdir="a/..", background=True) == [
        RunCommand(script="x", cwd=root, background=True)
    ]
    assert shell.effects(terminal, command="x", workdir="$(y)") == [
        RunCommand(script="x", cwd=root)
    ]
    assert (terminal.repeat, process.repeat, search_files.repeat) == ("never", "never", "safe")


def test_the_schemas_stay_small() -> None:
    specs = [tool.spec for tool in (terminal, process, search_files)]
    assert sum(len(encode(spec)) for spec in specs) < 2_600
