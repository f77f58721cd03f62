"""The command line, run in this process against a home of its own."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hermes.surfaces.cli.running import run


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal:
    """Runs commands against a home of its own."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Result:
        code = run(list(arguments))
        out, err = self._capsys.readouterr()
        return Result(code, out, err)

    def answer(self, text: str, *arguments: str) -> Result:
        """Run a command at a terminal at which this is typed."""
        master, slave = pty.openpty()
        os.write(master, text.encode())
        with open(slave) as keyboard, pytest.MonkeyPatch.context() as patch:  # noqa: PTH123
            patch.setattr("sys.stdin", keyboard)
            result = self(*arguments)
        os.close(master)
        return result

    def write(self, text: str) -> None:
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.yaml").write_text(text)
        (self.home / "config.yaml").chmod(0o600)
