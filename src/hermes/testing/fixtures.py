"""The pytest plugin: a throw-away home, a scripted model server, virtual time and seeded chance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# pytest loads this module in every run of everybody who has Hermes installed, so what the
# fixtures need is imported when a test asks for them.
if TYPE_CHECKING:
    from hermes.core.world import World
    from hermes.testing.clock import VirtualClock
    from hermes.testing.effects import EffectLog
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
    """An empty home folder for this test alone. HERMES_HOME points to it, and the keys of paid
    providers are taken out of the environment. Refuses to be the person's own home."""
    home = (tmp_path / "hermes-home").resolve()
    real = (Path.home() / ".hermes").resolve()
    if home == real or real in home.parents:
        pytest.fail(f"the temporary folder {home} lies in the real home {real}")
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    return home


@pytest.fixture
def model_server() -> Iterator[ScriptedServer]:
    """A scripted model server with an empty script, in a thread of its own, so that it serves
    plain and async tests and subprocesses alike. Give it steps with `add`. A request that broke
    its wire's rules fails the test at the end, unless the test cleared `violations`."""
    from hermes.testing.server import ScriptedServer

    with ScriptedServer.in_thread() as server:
        yield server
    if server.violations:
        pytest.fail("\n".join(f"request {v.n}: {v.reason}" for v in server.violations))


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Time that moves only by `advance` and `run_until`."""
    from hermes.testing.clock import VirtualClock

    return VirtualClock()


@pytest.fixture
def seeded(virtual_clock: VirtualClock) -> World:
    """A World with the test's virtual clock and the same chance in every run."""
    from hermes.testing.clock import seeded_world

    return seeded_world(0, clock=virtual_clock)


@pytest.fixture
def effect_log(tmp_path: Path) -> EffectLog:
    """A file that counts real effects, also those of processes that were killed."""
    from hermes.testing.effects import EffectLog

    return EffectLog(tmp_path / "effects.log")
