"""Somebody's first hour: every step works, and stands where the program sends them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import calls, says
from tests.surfaces.cli.program import ROOT
from tests.surfaces.cli.terminal import Result

SECONDS = 240
START = "import sys; from hermes.surfaces.cli.entry import main; sys.exit(main())"


class Newcomer:
    """Works with `./hermes` in a clone, and does only what the pages say."""

    def __init__(self, clone: Path, work: Path) -> None:
        self.clone = clone
        self.work = work
        self.pages = {path.name: path.read_text() for path in (clone / "docs").glob("*.md")}
        self.home = work.parent / "home"

    def __call__(self, *words: str, page: str = "quickstart.md", input: str = "") -> Result:
        """Run a command whose first words stand on a page."""
        shown = "hermes " + " ".join(word for word in words[:2] if not word.startswith("/"))
        assert shown.split(" -")[0] in self.pages[page], f"{page} does not tell of `{shown}`"
        env = {"PATH": os.environ["PATH"], "HOME": str(self.work.parent)}
        run = subprocess.run(
            [str(self.clone / "hermes"), *words],
            cwd=self.work,
            env={**env, "HERMES_HOME": str(self.home)},
            input=input,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Result(run.returncode, run.stdout, run.stderr)


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    """A clone with all files that git knows. Its environment is made already, as making one needs
    a package index."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode or shutil.which("git") is None:
        pytest.skip("this is not a checkout")
    clone, work = tmp_path / "clone", tmp_path / "project"
    work.mkdir()
    for name in listed.stdout.decode().split("\0"):
        if name and not name.startswith("tests/") and (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    for compiled in (ROOT / "src").rglob(f"__pycache__/*.{sys.implementation.cache_tag}.pyc"):
        # Known by the times of their sources, which are copied too: nothing is compiled twice.
        target = clone / compiled.relative_to(ROOT)
        if target.parent.parent.is_dir():
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, target)
    program = clone / ".venv" / "bin" / "hermes"
    program.parent.mkdir(parents=True)
    source = f'PYTHONPATH="{clone}/src" exec "{sys.executable}" -c \'{START}\' "$@"'
    program.write_text(f"#!/bin/sh\n{source}\n")
    program.chmod(0o755)
    stamp = clone / ".venv" / ".made-for-core"
    stamp.touch()
    os.utime(clone / "pyproject.toml", (1, 1))
    return Newcomer(clone, work)


def test_a_first_hour(newcomer: Newcomer) -> None:
    with ScriptedServer.in_thread(models=("small", "big")) as server:
        first_hour(newcomer, server)


def first_hour(hermes: Newcomer, server: ScriptedServer) -> None:
    notes = hermes.work / "notes.txt"
    notes.write_text("buy milk\n")

    # The first command tells what there is, and each of these leads to a page.
    helped = hermes("--help").out
    for name in ("model", "tools", "sessions", "undo", "setup", "doctor"):
        assert re.search(rf"^  {name} ", helped, re.MULTILINE)

    # Asking works before anything is set up, and says what a real model needs.
    asked = hermes("-z", "list the files here")
    assert asked.code == 0
    assert "notes.txt" in asked.out
    assert "OPENAI_BASE_URL" in asked.err
    assert "OPENAI_BASE_URL" in hermes.pages["quickstart.md"]

    # Another model answers.
    url = f"{server.url}/v1"
    chosen = hermes("model", "set", "small", "--provider", "custom", "--base-url", url)
    assert chosen.code == 0, chosen.err
    server.add(says("Hello, I am small."))
    assert hermes("-z", "hello").out == "Hello, I am small.\n"
    assert hermes("model", "set", "big").code == 0
    assert "big" in hermes("status", page="setting-up.md").out

    # A tool more.
    assert "  user_model" in hermes("tools", "list", page="setting-up.md").out
    assert hermes("tools", "enable", "user_model").code == 0
    assert "✓ user_model" in hermes("tools", "list", page="setting-up.md").out

    # What was said yesterday is found by what it was about, and goes on.
    line = {
        "session": "yesterday",
        "at": time.time() - 86_400,
        "role": "user",
        "text": "The marmalade recipe needs seven oranges.",
    }
    assert hermes("sessions", "import", "-", page="sessions.md", input=json.dumps(line)).code == 0
    assert "1d ago" in hermes("sessions", "list").out
    assert "yesterday" in hermes("sessions", "search", "marmalade").out
    server.add(says("Seven oranges."))
    assert hermes("-r", "yesterday", "-z", "how many oranges?").out == "Seven oranges.\n"
    assert "marmalade" in json.dumps(server.requests[-1].body)

    # What a turn did to a file is seen and taken back.
    server.add(
        calls("read_file", path="notes.txt"),
        calls("write_file", path="notes.txt", content="buy wine\n"),
        says("Done."),
    )
    assert hermes("-z", "wine instead of milk").code == 0
    assert notes.read_text() == "buy wine\n"
    assert "notes.txt" in hermes("undo", "--preview").out
    assert hermes("undo").code == 0
    assert notes.read_text() == "buy milk\n"

    # Nothing of it is wrong.
    assert hermes("doctor").code == 0
