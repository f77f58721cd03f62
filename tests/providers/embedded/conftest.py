"""Models for tests: one that plays a script in a helper process, and the real small one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.embedded.engines import EnginePool
from hermes.providers.embedded.provider import EmbeddedModel
from tests.providers.embedded.gguf_files import write_model

WEIGHTS = Path(__file__).parents[3] / ".venv" / "weights" / "smollm2.gguf"
RUNTIME = Path(__file__).parent / "runtime"


async def heard(model: EmbeddedModel, prompt: Prompt) -> list[Delta | Reply]:
    return [item async for item in model.reply(prompt)]


class Played:
    """A model file whose runtime plays a script."""

    def __init__(self, folder: Path, http: HttpClient, engines: EnginePool) -> None:
        self.folder = folder
        self._http = http
        self.engines = engines

    def model(
        self,
        script: list[dict[str, Any]] | str,
        *,
        parameters: int = 8_000_000_000,
        window: int | None = None,
        **metadata: Any,
    ) -> EmbeddedModel:
        (self.folder / "script.json").write_text(json.dumps(script))
        path = write_model(self.folder / "model.gguf", parameters=parameters, **metadata)
        return EmbeddedModel(
            path, http=self._http, world=World(), engines=self.engines, window=window
        )

    def with_engines(self, engines: EnginePool) -> EmbeddedModel:
        """The same model in other engines."""
        path = self.folder / "model.gguf"
        return EmbeddedModel(path, http=self._http, world=World(), engines=engines)

    def signal(self, pid: int) -> None:
        """ProcessLookupError when there is no such process."""
        os.kill(pid, 0)

    def requests(self) -> list[dict[str, Any]]:
        return _lines(self.folder / "requests.jsonl")

    def starts(self) -> list[dict[str, Any]]:
        return _lines(self.folder / "starts.jsonl")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.aclose()


@pytest.fixture
async def played(
    tmp_path: Path, http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Played]:
    monkeypatch.setenv("PYTHONPATH", str(RUNTIME))
    engines = EnginePool()
    yield Played(tmp_path, http, engines)
    await engines.close()


@pytest.fixture(scope="session")
def weights() -> Path:
    if find_spec("xllamacpp") is None or not WEIGHTS.exists():
        pytest.skip("needs xllamacpp and the small weights")
    return WEIGHTS


@pytest.fixture(scope="session")
def engines() -> Iterator[EnginePool]:
    """Shared by all tests of the real model: it is loaded once."""
    made = EnginePool()
    yield made
    asyncio.run(made.close())
