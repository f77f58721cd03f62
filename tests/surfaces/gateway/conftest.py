"""What the tests of the gateway share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.surfaces.gateway.machine import Machine
from tests.surfaces.gateway.wire import WireServer


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with WireServer().listening() as wire:
        made = Machine(tmp_path, wire)
        async with made.model:
            made.use_model()
            yield made
            for process in made.processes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
