"""What an engine says when a container cannot be started."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.execution_settings import TerminalSettings
from hermes.core.errors import ToolError
from hermes.workspaces.remote.containers import ContainerMachine

DAEMON = "docker: Cannot connect to the Docker daemon at unix:///x.sock. Is it running?"
PULL = "docker: Error response from daemon: pull access denied for nobody/none"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (f"{DAEMON}\n\nRun 'docker run --help' for more information", DAEMON),
        (f"Unable to find image 'nobody/none' locally\n{PULL}\nSee 'docker run --help'.", PULL),
        ("Error: short-name resolution failed\n", "Error: short-name resolution failed"),
        ("out of order", "out of order"),
        ("", "no reason given"),
    ],
)
async def test_the_reason_is_told_and_not_the_hint_after_it(
    tmp_path: Path, written: str, reason: str
) -> None:
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{written}\nEND\nexit 125\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    machine = ContainerMachine(TerminalSettings(backend="docker"), "key", env)
    with pytest.raises(ToolError) as caught:
        await machine.open()
    assert str(caught.value) == f"The container cannot be started: {reason}"
