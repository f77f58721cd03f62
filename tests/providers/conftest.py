"""One HTTP client per test, closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.net.http import HttpClient


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()
