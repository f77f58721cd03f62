"""The program with a home, a folder to work in and the offline assistant, all for one test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.cli.terminal import Result, Terminal

ROOT = Path(__file__).parents[3]
PROGRAM = str(Path(sys.executable).with_name("hermes"))
OFFLINE = ("--provider", "offline")
SECONDS = 240


class Program(Terminal):
    """Called, it runs in this process; `process` is the real command."""

    def __init__(self, home: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(home, capsys)
        self.work = work

    def ask(self, prompt: str, *options: str) -> Result:
        """One turn with the offline assistant."""
        return self(*OFFLINE, "-z", prompt, *options)

    def session(self, prompt: str, *options: str) -> str:
        """The id of the session in which this was asked."""
        return str(lines(self.ask(prompt, "--json", *options))[-1]["session_id"])

    def sessions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("sessions", "list", "--json").json
        return found

    def said(self, session: str) -> list[str]:
        """What the person has said in a session, oldest first."""
        messages = self("sessions", "show", session, "--json").json["messages"]
        return [message["text"] for message in messages if message["role"] == "user"]

    def env(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(self.work.parent),
            "HERMES_HOME": str(self.home),
            **(more or {}),
        }

    def process(
        self, *arguments: str, env: Mapping[str, str] | None = None, input: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.work,
            env=self.env(env),
            input=input,
            capture_output=True,
            timeout=SECONDS,
        )

    def shell(self, script: str, env: Mapping[str, str] | None = None) -> Result:
        """A line of shell in which `hermes` is the program."""
        run = subprocess.run(
            ["bash", "-c", f'hermes() {{ "{PROGRAM}" "$@"; }}; {script}'],
            cwd=self.work,
            env=self.env(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Result(run.returncode, run.stdout, run.stderr)


def lines(result: Result) -> list[dict[str, Any]]:
    """The JSON lines of a stream."""
    return [json.loads(line) for line in result.out.splitlines()]
