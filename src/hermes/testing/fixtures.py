"""The pytest plugin: a temporary home, a scripted model server, virtual time and a seeded world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# pytest loads this module in every run where Hermes is installed, so fixtures import what they
# need when they are used.
if TYPE_CHECKING:
    from hermes.core.world import World
    from hermes.testing.clock import VirtualClock
    from hermes.testing.observers import EffectLog
    from hermes.testing.server import ScriptedServer

KEYS = (
    "AI_GATEWAY_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FAL_KEY",
    "GEMINI_API_KEY",
    "GLM_API_KEY",
    "GOOGLE_API_KEY",
    "HF_TOKEN",
    "KIMI_API_KEY",
    "MINIMAX_API_KEY",
    "NOUS_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "REPLICATE_API_TOKEN",
    "XAI_API_KEY",
)


@pytest.fixture
def hermes_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for this test. HERMES_HOME points to it, and the keys of paid providers are
    removed from the environment. Fails if it would be the user's own home."""
    home = (tmp_path / "hermes-home").resolve()
    real = (Path.home() / ".hermes").resolve()
    if home == real or real in home.parents:
        pytest.fail(f"the temporary folder {home} is inside the real home {real}")
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    return home


@pytest.fixture
def model_server() -> Iterator[ScriptedServer]:
    """A scripted model server with an empty script, in its own thread, for sync and async tests and
    subprocesses. `add` gives it steps. A request that breaks the rules of its wire format fails the
    test at the end, unless the test clears `violations`."""
    from hermes.testing.server import ScriptedServer

    with ScriptedServer.in_thread() as server:
        yield server
    if server.violations:
        pytest.fail("\n".join(f"request {v.n}: {v.reason}" for v in server.violations))


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A clock that only `advance` and `run_until` move."""
    from hermes.testing.clock import VirtualClock

    return VirtualClock()


@pytest.fixture
def seeded(virtual_clock: VirtualClock) -> World:
    """A World with the virtual clock and the same random numbers in every run."""
    from hermes.testing.clock import seeded_world

    return seeded_world(0, clock=virtual_clock)


@pytest.fixture
def effect_log(tmp_path: Path) -> EffectLog:
    """A file that counts real effects, even of killed processes."""
    from hermes.testing.observers import EffectLog

    return EffectLog(tmp_path / "effects.log")
