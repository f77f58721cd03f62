"""What the tests of keys and logins share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.net.http import HttpClient
from tests.credentials.authority import Authority
from tests.credentials.bench import HandClock
from tests.loopback import serving


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


@pytest.fixture
async def authority(clock: HandClock) -> AsyncIterator[Authority]:
    """An authorization server whose clock is the test's."""
    found = Authority(clock.now)
    async with serving(found.answer) as url:
        found.url = url
        yield found
