"""What every test shares: one event loop backend, judged requests, long runs only on request."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.judges.plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the long kill and scale tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="long run; choose it with --slow"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
