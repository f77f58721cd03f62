"""Options and settings of all tests: --quick, --slow, --explore."""

from __future__ import annotations

import gc
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# Collection creates millions of objects that live until the end; scanning them takes a third
# of the collection time and slows every test.
gc.disable()

TESTS = Path(__file__).parent
QUICK = frozenset(
    (
        "codec",
        "commands",
        "config",
        "context",
        "core",
        "cron",
        "homes",
        "hosting",
        "models",
        "net",
        "policy",
        "recall",
        "replay",
        "tools",
        "web",
    )
)

pytest_plugins = ["tests.judges.plugin"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only the quick folders, for daily work")
    parser.addoption("--slow", action="store_true", help="also run the long kill and scale tests")
    parser.addoption("--explore", action="store_true", help="property tests try new examples")


# A shell starts background jobs with signals ignored, which programs of tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Property tests use the same examples in every run; --explore tries new ones."""
    settings.register_profile(
        "steady",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not config.getoption("--explore"),
    )
    settings.load_profile("steady")
    if not config.getoption("--explore"):
        # Constants come from the loaded modules, so examples would depend on them.
        assert callable(providers._get_local_constants)
        providers._get_local_constants = lambda: providers._local_constants


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """--quick skips folders that start many programs, servers or terminals."""
    if not config.getoption("--quick") or collection_path.parent != TESTS:
        return None
    return True if collection_path.is_dir() and collection_path.name not in QUICK else None


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
