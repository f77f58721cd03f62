"""A one-shot run loads only what a plain answer needs: modules cost memory and start-up time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says

SCRIPT = """
import os, sys
def leave(code):
    print(*sys.modules, file=sys.stderr)
    sys.stderr.flush()
    stop(code)
stop, os._exit = os._exit, leave
sys.argv = ["hermes", "-m", "test", "-z", "hi"]
from hermes.surfaces.cli.entry import main
leave(main() or 0)
"""
NOT_NEEDED = (
    "hermes.commands.input",
    "hermes.hooks.registry",
    "hermes.hooks.requests",
    "hermes.memory.service",
    "hermes.policy.shell.parser",
    "hermes.providers.offline",
    "hermes.providers.wire.messages",
    "hermes.providers.wire.responses",
    "hermes.replay.collection",
    "hermes.skills.library",
    "hermes.web.fetcher",
)


def test_a_plain_answer_loads_no_optional_package(tmp_path: Path) -> None:
    with ScriptedServer.in_thread([says("hello")]) as server:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "HERMES_HOME": str(tmp_path / "home"),
                "OPENAI_BASE_URL": f"{server.url}/v1",
                "OPENAI_API_KEY": "k",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
    loaded = done.stderr.split()
    assert done.stdout.strip() == "hello"
    assert "hermes.models.factory" in loaded
    assert [name for name in NOT_NEEDED if name in loaded] == []
