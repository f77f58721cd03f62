"""Ways to models as settings describe them, closed when a test is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import World
from hermes.models.models import Models
from tests.providers.asking import NapClock


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Callable[..., Models]]:
    made: list[Models] = []

    def make(config: str, **env: str) -> Models:
        (tmp_path / "config.yaml").write_text(config)
        made.append(Models(load(Home(tmp_path), env=env), World(clock=NapClock()), env=env))
        return made[-1]

    yield make
    for models in made:
        await models.close()
