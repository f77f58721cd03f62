"""What is remembered, corrected, poisoned and forgotten over a long time is as an oracle says."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from tests.memory.life import Life, obedient


async def live(folder: Path, seed: int, statements: int) -> Life:
    async with ScriptedServer(obedient) as server:
        life = Life(folder, server, seed)
        async with life.app() as app:
            await life.live(app, statements)
            assert await app.archive.verify() == ()
        assert server.violations == []
    return life


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_memory_is_what_the_oracle_says(tmp_path: Path, seed: int) -> None:
    life = await live(tmp_path, seed, 60)
    assert life.forgotten and life.checked > 120


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 103))
async def test_a_thousand_statements_are_what_the_oracle_says(tmp_path: Path, seed: int) -> None:
    life = await live(tmp_path, seed, 1_000)
    assert len(life.forgotten) > 20 and life.checked > 2_000
