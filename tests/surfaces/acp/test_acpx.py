"""The headless editor `acpx`, which others wrote: a whole session with a question and a diff."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.mcp.others import needs, other, with_others
from tests.surfaces.acp.editor import configure

pytestmark = needs("acpx")


# It tells by its exit code that something was denied.
@pytest.mark.parametrize(
    ("answer", "left", "code"), [("--approve-all", "second", 0), ("--deny-all", "first", 5)]
)
async def test_acpx_runs_a_session_with_an_edit(
    tmp_path: Path, answer: str, left: str, code: int
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("first\n")
    hermes = Path(sys.executable).with_name("hermes")
    steps = [calls("write_file", path="notes.txt", content="second\n"), says("That is all.")]
    async with ScriptedServer(steps) as server:
        configure(tmp_path / "home", server.url, "")
        agent = ("--agent", f"{hermes} acp", "--cwd", str(project))
        process = await asyncio.create_subprocess_exec(
            *(other("acpx"), *agent, answer, "exec", "change it"),
            env=with_others(
                {**os.environ, "HERMES_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
            ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(120):
            shown = (await process.communicate())[0].decode()
    assert process.returncode == code, shown
    assert "request_permission" in shown and "That is all." in shown and "end_turn" in shown
    assert (project / "notes.txt").read_text() == f"{left}\n"
