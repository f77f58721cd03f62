from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.sessions.talk import Talk


@pytest.fixture
def talk(hermes_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.setenv("HOME", str(tmp_path))
    hermes_home.rmdir()
    return Talk(hermes_home)
