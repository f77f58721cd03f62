"""Scripts that call tools: what they get, what they cannot do, and how they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.core.commands import Interrupt
from hermes.core.events import InnerCallFinished, ToolFinished
from hermes.workspaces.process_tree import find_by_argument
from tests.code_execution.stage import ScriptStage, script_stage
from tests.durability.observing import eventually


@pytest.fixture
async def scripts(tmp_path: Path) -> AsyncIterator[ScriptStage]:
    async with script_stage(tmp_path) as made:
        yield made


LOOP = """
from hermes_tools import read_file, write_file, terminal, search_files
total = 0
for name in ("a.txt", "b.txt"):
    total += int(read_file(name))
write_file("sum.txt", f"{total}\\n")
shown = terminal("cat sum.txt; exit 3")
print("total", total, shown.details["exit_code"], "sum.txt" in search_files("5", path="."))
"""


async def test_many_calls_are_one_result(scripts: ScriptStage) -> None:
    (scripts.project / "a.txt").write_text("2\n")
    (scripts.project / "b.txt").write_text("3\n")
    result = await scripts.run(LOOP)
    assert result.text == "total 5 3 True\n[5 tool calls]"
    assert not result.failed
    assert (scripts.project / "sum.txt").read_text() == "5\n"
    inner = [r.event for r in scripts.records if isinstance(r.event, InnerCallFinished)]
    assert [each.result.name for each in inner] == [
        "read_file",
        "read_file",
        "write_file",
        "terminal",
        "search_files",
    ]
    assert sum(isinstance(record.event, ToolFinished) for record in scripts.records) == 1
    assert result.details["tool_calls_made"] == 5
    assert result.details["status"] == "success"


async def test_a_file_is_read_as_often_as_the_script_likes(scripts: ScriptStage) -> None:
    (scripts.project / "a.txt").write_text("one\ntwo\n")
    code = "from hermes_tools import read_file\nfor _ in range(4): print(repr(read_file('a.txt')))"
    result = await scripts.run(code)
    assert result.text == "'one\\ntwo'\n" * 4 + "[4 tool calls]"


async def test_threads_of_a_script_call_tools_in_parallel(scripts: ScriptStage) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import read_file
with ThreadPoolExecutor(4) as pool:
    print(sorted(pool.map(lambda n: read_file(f"{n}.txt"), range(8))))
"""
    for n in range(8):
        (scripts.project / f"{n}.txt").write_text(f"file {n}")
    result = await scripts.run(code)
    assert result.text.startswith(str([f"file {n}" for n in range(8)]))


async def test_an_error_is_raised_in_the_script_and_shown(scripts: ScriptStage) -> None:
    code = """
from hermes_tools import read_file, ToolError
try:
    read_file("missing.txt")
except ToolError as error:
    print("caught:", error)
raise SystemExit(4)
"""
    result = await scripts.run(code)
    assert result.failed
    assert "caught: There is no file missing.txt" in result.text
    assert result.text.endswith("[exit 4 · 1 tool calls]")


async def test_the_call_after_the_last_one_fails(tmp_path: Path) -> None:
    code = """
from hermes_tools import terminal, ToolError
for n in range(4):
    try:
        terminal(f"echo {n} >> log")
    except ToolError as error:
        print(error)
"""
    async with script_stage(tmp_path, code_execution__max_tool_calls=3) as scripts:
        result = await scripts.run(code)
        assert result.text == "A script may make at most 3 tool calls.\n[3 tool calls]"
        assert (scripts.project / "log").read_text() == "0\n1\n2\n"


async def test_scripts_cannot_call_other_tools_or_parameters(scripts: ScriptStage) -> None:
    code = """
import hermes_tools
for name, args in (("execute_code", {"code": "1"}), ("memory", {"action": "add"}),
                   ("terminal", {"command": "sleep 9", "background": True})):
    try:
        hermes_tools._call(name, args)
    except hermes_tools.ToolError as error:
        print(error)
"""
    lines = (await scripts.run(code)).text.split("\n")
    assert lines[0].startswith("Scripts cannot call 'execute_code'; there are: patch, read_file")
    assert lines[1].startswith("Scripts cannot call 'memory'")
    assert lines[2] == "terminal has no parameter 'background' in scripts."


async def test_a_wrong_token_is_refused(scripts: ScriptStage) -> None:
    code = """
import hermes_tools
hermes_tools._TOKEN = "guess"
try:
    hermes_tools.read_file("a.txt")
except hermes_tools.ToolError as error:
    print(error)
"""
    assert (await scripts.run(code)).text == "The token is wrong."


async def test_where_sockets_are_refused_calls_go_through_files(scripts: ScriptStage) -> None:
    (scripts.project / "a.txt").write_text("here")
    code = """
import hermes_tools
hermes_tools._SOCKET = ""
print(hermes_tools.read_file("a.txt"), hermes_tools.terminal("echo out"))
"""
    assert (await scripts.run(code)).text == "here out\n[2 tool calls]"


async def test_the_environment_has_no_secrets(scripts: ScriptStage) -> None:
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    result = await scripts.run(code)
    env = json.loads(result.text)
    assert "OPENAI_API_KEY" not in env
    assert not [name for name in env if "KEY" in name or "PASSWORD" in name]


async def test_the_variables_of_a_script_do_not_stay_in_the_shell(scripts: ScriptStage) -> None:
    from hermes.testing.steps import calls

    scripts.code = [
        calls("execute_code", code="print(1)"),
        calls("terminal", command="env | grep -c -e HERMES_RPC -e PYTHONPATH"),
    ]
    results = await scripts._results()
    assert results[-1].text.startswith("0")


async def test_long_output_is_in_a_file(scripts: ScriptStage) -> None:
    result = await scripts.run("print('\\n'.join(f'line {n:06}' for n in range(100_000)))")
    assert len(result.text) < 60_000
    assert "bytes omitted" in result.text
    whole = await asyncio.to_thread(Path(str(result.details["full_output_path"])).read_text)
    assert whole.count("\n") == 100_000


async def test_a_timeout_ends_grandchildren_too(scripts: ScriptStage) -> None:
    code = "import subprocess\nprint('on', flush=True)\nsubprocess.run(['sleep', '97531'])"
    result = await scripts.run(code, timeout=2)
    assert result.details["status"] == "timeout"
    assert result.failed
    assert result.text.startswith("on")
    await eventually(lambda: not find_by_argument("97531"))


async def test_an_interrupt_ends_the_script(scripts: ScriptStage) -> None:
    code = "import time\nopen('begun', 'w').close()\ntime.sleep(600)"
    running = asyncio.ensure_future(scripts.run(code))
    await eventually((scripts.project / "begun").exists)
    await scripts.send(Interrupt())
    async with asyncio.timeout(20):
        assert (await running).details["status"] == "interrupted"


@pytest.mark.parametrize(
    "code",
    [
        "import shutil; shutil.rmtree('/home')",
        "import subprocess; subprocess.run(['git', 'push', 'origin'])",
        "from hermes_tools import terminal; terminal('git push origin')",
        "from hermes_tools import write_file; write_file('/etc/cron.d/x', 'y')",
    ],
)
async def test_a_script_may_do_no_more_than_the_terminal(scripts: ScriptStage, code: str) -> None:
    result = await scripts.run(code)
    assert result.failed
    assert "Not allowed" in result.text
