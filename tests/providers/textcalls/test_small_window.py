"""The whole program with a model that writes calls as text, on a server with a small window."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.providers.textcalls.forms import FORMS, Call, Form

PROGRAM = str(Path(sys.executable).with_name("hermes"))
ROOT = Path(__file__).parents[3]
STEPS = 20
WINDOW = 8_192


def nth_call(n: int) -> Call:
    """Write a file, read it back, and so on."""
    path = f"part{n // 2}.txt"
    if n % 2 == 0:
        text = "".join(f"part {n // 2} line {line}: some words\n" for line in range(4))
        return "write_file", {"path": path, "content": text}
    return "read_file", {"path": path}


def worker(form: Form) -> Callable[[Request], Step]:
    def step(request: Request) -> Step:
        messages = json.loads(request.raw)["messages"]
        done = sum(message["role"] == "tool" for message in messages)
        if done == STEPS:
            return says(f"All {STEPS} steps are done.")
        words = "" if form.plain else f"Step {done + 1}.\n"
        return says(words + form.write([nth_call(done)]))

    return step


def run(server: ScriptedServer, home: Path, work: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "--provider", "custom", "-m", "qwen3:8b", "-z", "do the parts"],
        cwd=work,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(work.parent),
            "HERMES_HOME": str(home),
            "OPENAI_BASE_URL": f"{server.url}/v1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", ["hermes", "qwen-coder", "json"])
def test_twenty_steps_in_eight_thousand_tokens(name: str, tmp_path: Path) -> None:
    form = next(form for form in FORMS if form.name == name)
    work = tmp_path / "work"
    work.mkdir()
    with ScriptedServer.in_thread(worker(form), window=WINDOW, models=("qwen3:8b",)) as server:
        done = run(server, tmp_path / "home", work)
        assert done.stdout.endswith(f"All {STEPS} steps are done.\n"), done.stdout + done.stderr
        assert server.violations == []
        assert len(server.requests) == STEPS + 1
    assert sorted(path.name for path in work.iterdir()) == sorted(
        f"part{n}.txt" for n in range(STEPS // 2)
    )
    assert "<tool_call>" not in done.stdout and "line 3" in (work / "part9.txt").read_text()
