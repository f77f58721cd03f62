"""The headless editor `acpx`, which others wrote: whole sessions with a question and a diff."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.mcp.conftest import LITTLE
from tests.mcp.others import needs, other, with_others
from tests.surfaces.acp.editor import configure

pytestmark = needs("acpx")
ANSWER = "That is all that there is to say about it, and it comes in several pieces."


class Wire:
    """All messages of one run, in both directions."""

    def __init__(self, output: str) -> None:
        self.messages: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]

    def called(self, method: str) -> list[Any]:
        return [each["params"] for each in self.messages if each.get("method") == method]

    def updates(self, kind: str) -> list[Any]:
        updates = (each["update"] for each in self.called("session/update"))
        return [each for each in updates if each["sessionUpdate"] == kind]

    @property
    def stops(self) -> list[str]:
        results = (each.get("result") or {} for each in self.messages)
        return [each["stopReason"] for each in results if "stopReason" in each]


async def run(tmp_path: Path, *options: str, steps: list[Step]) -> tuple[Wire, int]:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("first\n")
    hermes = Path(sys.executable).with_name("hermes")
    async with ScriptedServer(steps) as server:
        configure(tmp_path / "home", server.url, "")
        agent = ("--agent", f"{hermes} acp", "--cwd", str(project), "--format", "json")
        env = {**os.environ, "HERMES_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
        process = await asyncio.create_subprocess_exec(
            *(other("acpx"), *agent, *options, "exec", "change it"),
            env=with_others(env),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(120):
            shown, _ = await process.communicate()
    return Wire(shown.decode()), process.returncode or 0


# It tells by its exit code that something was denied.
@pytest.mark.parametrize(
    ("answer", "left", "ending", "code"),
    [("--approve-all", "second", "completed", 0), ("--deny-all", "first", "failed", 5)],
)
async def test_acpx_runs_a_session_with_an_edit(
    tmp_path: Path, answer: str, left: str, ending: str, code: int
) -> None:
    steps = [calls("write_file", path="notes.txt", content="second\n"), says(ANSWER)]
    wire, exit_code = await run(tmp_path, answer, steps=steps)
    [begun] = wire.updates("tool_call")
    [diff] = begun["content"]
    assert (begun["kind"], diff["type"]) == ("edit", "diff")
    assert (diff["oldText"], diff["newText"]) == ("first\n", "second\n")
    [asked] = wire.called("session/request_permission")
    assert asked["toolCall"]["toolCallId"] == begun["toolCallId"]
    endings = [each.get("status") for each in wire.updates("tool_call_update")]
    assert endings[-1] == ending
    chunks = [each["content"]["text"] for each in wire.updates("agent_message_chunk")]
    assert "".join(chunks) == ANSWER and len(chunks) > 1
    assert wire.stops == ["end_turn"] and exit_code == code
    assert (tmp_path / "project" / "notes.txt").read_text() == f"{left}\n"


async def test_acpx_brings_a_server_of_its_own(tmp_path: Path) -> None:
    config = tmp_path / "servers.json"
    little = {
        "name": "little",
        "type": "stdio",
        "command": sys.executable,
        "args": ["-S", "-E", str(LITTLE)],
        "env": [],
    }
    config.write_text(json.dumps({"mcpServers": [little]}))
    use = calls("tool_call", name="mcp_acp_little_echo", arguments={"text": "hi"})
    options = ("--approve-all", "--mcp-config", str(config))
    wire, _ = await run(tmp_path, *options, steps=[use, says("Used.")])
    assert [each["title"] for each in wire.updates("tool_call")] == ["mcp_acp_little_echo"]
    ended = wire.updates("tool_call_update")[-1]
    assert ended["status"] == "completed"
    assert ended["content"][0]["content"]["text"] == "echo: hi"
