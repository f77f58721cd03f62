"""One HTTP client per test, closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.providers.http import Http


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    client = Http()
    yield client
    await client.aclose()
