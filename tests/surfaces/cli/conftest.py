"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from hermes.testing.server import ScriptedServer
from tests.surfaces.cli.program import Program
from tests.surfaces.cli.terminal import Terminal

# How many examples are made up for each property, in haste and with --slow.
FEW, MANY = 30, 400


def pytest_itemcollected(item: pytest.Item) -> None:
    test = getattr(item, "obj", None)
    if getattr(test, "is_hypothesis_test", False):
        settings(max_examples=MANY if item.config.getoption("--slow") else FEW)(test)


@pytest.fixture
def hermes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HERMES_PROFILE", "HERMES_MAX_ITERATIONS", "HERMES_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return Terminal(tmp_path / "home", capsys)


@pytest.fixture
def program(
    tmp_path: Path,
    hermes_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """A home that does not exist yet and an empty folder, which is the current one."""
    hermes_home.rmdir()
    for name in ("HERMES_PROFILE", "HERMES_MODEL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # no start files of whoever runs the tests
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return Program(hermes_home, work, capsys)


@pytest.fixture
def scripted(program: Program, model_server: ScriptedServer) -> Program:
    """A program whose settings point at the scripted model."""
    url = f"{model_server.url}/v1"
    program.write(f'model: {{default: scripted, provider: custom, base_url: "{url}"}}\n')
    return program
