"""Homes that belong to one test."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.config.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")
