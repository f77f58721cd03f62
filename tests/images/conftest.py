"""A server that draws and a place for pictures, for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.images.studio import Studio
from hermes.testing.image_provider import plain_studio
from tests.images.fakes import Fake, faking

MakeStudio = Callable[..., Studio]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with faking() as server:
        yield server


@pytest.fixture
def make(tmp_path: Path) -> MakeStudio:
    """A studio that may fetch from this machine, with these variables and settings."""

    def studio(env: dict[str, str] | None = None, **settings: Any) -> Studio:
        return plain_studio(tmp_path / "images", env=env, settings=settings, private=True)

    return studio
