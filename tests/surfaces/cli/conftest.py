"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.cli.terminal import Terminal


@pytest.fixture
def hermes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "home"))
    for name in ("HERMES_PROFILE", "HERMES_MAX_ITERATIONS", "HERMES_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return Terminal(tmp_path / "home", capsys)
