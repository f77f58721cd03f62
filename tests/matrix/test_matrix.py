"""Every fault on every surface: held or one clear line; nothing lost, nothing doubled, no hang."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.matrix.faults import FAULTS, Fault, say_malformed, say_through_resets, wait_settled
from tests.matrix.ground import Ground, Outcome, ground
from tests.matrix.surfaces import SURFACES, Gateway, Surface
from tests.surfaces.cli.chat.pane import TMUX

pytestmark = pytest.mark.slow
MALFORMED = 35
ACKNOWLEDGED = "the message is acknowledged"
RESETS = 40
# What no person should read.
UNCLEAR = ("Traceback", "Internal error", "bug in Hermes", "unexpected keyword")


@asynccontextmanager
async def running(
    root: Path, name: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Ground, Surface]]:
    if name == "chat" and TMUX is None:
        pytest.skip("tmux is not installed")
    async with ground(root, size=fault.size) as here:
        here.settings += fault.settings
        here.configure()
        here.control()
        for key, value in here.env.items():
            monkeypatch.setenv(key, value)
        surface = SURFACES[name](here)
        try:
            await surface.start()
            yield here, surface
        finally:
            await surface.stop()
            if isinstance(surface, Gateway):
                await surface.close()


def note(fault: str, surface: str, outcome: str, seconds: float) -> None:
    if path := os.environ.get("HERMES_MATRIX_TABLE"):
        with Path(path).open("a") as table:
            table.write(f"| {fault} | {surface} | {outcome} | {seconds:.1f} s |\n")


def check_clear(outcome: Outcome, surface: str) -> None:
    """One line that a person understands."""
    assert outcome.error, "nobody was told anything"
    assert not any(word in outcome.error for word in UNCLEAR), outcome.error
    if surface == "-z":
        assert outcome.error.count("error:") == 1 and "\n" not in outcome.error, outcome.error


@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault(
    tmp_path: Path, fault: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = FAULTS[fault]
    async with running(tmp_path, name, how, monkeypatch) as (here, surface):
        said = {"one": await surface.say("one")}
        assert said["one"].answer == "You said: one", said["one"]
        await how.before(here, surface)
        begun = time.monotonic()
        said["two"] = await surface.say("two")
        seconds = time.monotonic() - begun
        note(fault, name, said["two"].describe(), seconds)
        assert not (how.must_fail and said["two"].answer)
        if not said["two"].answer:
            check_clear(said["two"], name)
        await how.heal(here, surface)
        await wait_settled(surface)
        if how.restarts:
            await surface.restart()
        surface.is_healed = True
        if isinstance(surface, Gateway) and said["two"].error == ACKNOWLEDGED:
            await surface.wait_for("two")
        said["three"] = await surface.say("three")
        assert said["three"].answer.endswith("You said: three"), said["three"]
        await surface.stop()
        await here.check(said, lossy=how.lossy)


@pytest.mark.parametrize("name", SURFACES)
async def test_malformed_answers(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, name, Fault(), monkeypatch) as (here, surface):
        begun = time.monotonic()
        said = await say_malformed(here, surface, MALFORMED)
        await surface.stop()
        await here.check(said)
        note(f"{MALFORMED} malformed answers", name, "held", time.monotonic() - begun)


@pytest.mark.parametrize("name", SURFACES)
async def test_resets(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, name, Fault(), monkeypatch) as (here, surface):
        begun = time.monotonic()
        said = await say_through_resets(here, surface, RESETS)
        await surface.stop()
        await here.check(said)
        note(f"{RESETS} resets", name, "held", time.monotonic() - begun)
    await asyncio.sleep(0)
