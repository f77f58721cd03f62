"""The agents of a test, closed at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from tests.surfaces.python.programs import Programs


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with ScriptedServer.in_thread([]) as server:
        made = Programs(tmp_path, server)
        yield made
        made.close()
        assert server.violations == []
