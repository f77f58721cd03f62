"""Whoever waits for long is told why, on every surface."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from hermes.core.fitting import announced_silence
from hermes.core.prompt import Notice
from hermes.testing.faults import hangs
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, fails
from tests.durability.stage import Stage, finished
from tests.surfaces.api.serving import serving

TOMORROW = fails(429, retry_after=86_400)
WAITS = "Retrying in 600 s (2 of 3). The provider asks to wait 86,400 s."


async def _first_line(root: Path, step: Step) -> str:
    """What `-z` writes to stderr before it is interrupted."""
    async with ScriptedServer([step], loop=True) as server:
        stage = Stage(root, server)
        process = await stage.start(*stage.asking("Hello?"))
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stderr.readline(), 60)
        process.send_signal(signal.SIGINT)
        assert (await finished(process)).code == 130
    return line.decode()


async def test_oneshot_says_that_it_waits_for_a_provider(tmp_path: Path) -> None:
    assert (await _first_line(tmp_path, TOMORROW)).rstrip().endswith(WAITS)


@pytest.mark.slow
async def test_oneshot_says_that_the_model_is_silent(tmp_path: Path) -> None:
    line = await _first_line(tmp_path, hangs())
    assert line == "The model has sent nothing for 30 s; still waiting.\n"


def test_a_run_of_the_api_says_why_it_waits(tmp_path: Path) -> None:
    with (
        ScriptedServer.in_thread([TOMORROW], loop=True) as model,
        serving(tmp_path, model.url) as server,
        server.client(timeout=60) as client,
    ):
        run = client.post("/v1/runs", json={"input": "Hello?"}).json()["run_id"]
        limit = time.monotonic() + 30
        while not (state := client.get(f"/v1/runs/{run}").json()).get("delay"):
            assert time.monotonic() < limit and state["status"] in ("queued", "running")
            time.sleep(0.05)
        assert state["delay"].endswith(WAITS)
        client.post(f"/v1/runs/{run}/stop")


async def test_silence_is_announced_until_something_arrives() -> None:
    shown: list[Notice] = []
    news = asyncio.Event()

    def show(notice: Notice) -> None:
        shown.append(notice)
        news.set()

    with announced_silence(show, 0.02) as heard:
        await news.wait()
        heard()
        news.clear()
        await news.wait()
    assert {notice.kind for notice in shown} == {"wait"}
    count = len(shown)
    await asyncio.sleep(0.1)
    assert len(shown) == count
