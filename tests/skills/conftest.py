"""The bench that most tests of skills work at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skills.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
