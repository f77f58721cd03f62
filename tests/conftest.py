"""What every test shares: one event loop backend, judged requests, long runs only on request."""

from __future__ import annotations

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Collecting makes some millions of objects that live until the end: to look through them again and
# again takes a third of the time of collecting, and later a part of every test.
gc.disable()

pytest_plugins = ["tests.judges.plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the long kill and scale tests")
    parser.addoption("--explore", action="store_true", help="property tests try new examples")


# What is started in the background is deaf, and so would every program be that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Whether a change is sound does not hang on the luck of the day: the same examples each time,
    new ones on request. And a busy machine is slow at making them up, which says nothing."""
    settings.register_profile(
        "steady",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not config.getoption("--explore"),
    )
    settings.load_profile("steady")
    if not config.getoption("--explore"):
        # They come from the modules that happen to be loaded, and to find them reads all of those.
        assert callable(providers._get_local_constants)
        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    long = [item for item in items if "slow" in item.keywords]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if "slow" not in item.keywords]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
