"""Many sessions in one process: what an idle one weighs, and whether many streams ever stall."""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from pathlib import Path

from bench.measure import report, rounded
from bench.serving import served
from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.prompt import TextDelta
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.surfaces.cli.entry import NEW_OBJECTS
from hermes.testing.steps import Pace, Step


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=256)
    options = parser.parse_args()
    gc.set_threshold(NEW_OBJECTS)
    answer = Step(text="word " * 60, pace=Pace(chunk=5, between_seconds=0.05))
    with tempfile.TemporaryDirectory() as folder, served([answer], loop=True) as url:
        asyncio.run(_run(Path(folder), url, options.idle, options.streams))


async def _run(folder: Path, url: str, idle: int, streams: int) -> None:
    env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k", "HOME": str(folder)}
    config = load(Home(folder / "home"), env=env, flags={"model.default": "test"})
    async with App(config, env=env, world=World()) as app:
        wish = SessionRequest(source="bench", attended=False, cwd=str(folder))
        sessions = [await app.open(wish) for _ in range(8)]
        gc.collect()
        before = _resident()
        sessions += [await app.open(wish) for _ in range(idle)]
        gc.collect()
        report(
            "idle_session",
            count=idle,
            kb_each=rounded((_resident() - before) / idle, 1),
            goal="kb <= 20",
        )
        await _stream(sessions[:streams])


async def _stream(sessions: list[Session]) -> None:
    """All sessions begin in the same instant; a stall is how late a 10 ms timer of the loop is,
    once while they begin and once while all of them stream."""
    stalls: list[tuple[float, float]] = []
    first: list[float] = []
    begun = time.perf_counter()
    ticking = asyncio.ensure_future(_tick(stalls, begun))
    await asyncio.gather(*(_talk(session, begun, first) for session in sessions))
    ticking.cancel()
    all_stream = max(first)
    report(
        "active_streams",
        count=len(sessions),
        worst_stall_ms=rounded(max(s for at, s in stalls if at > all_stream) * 1000, 1),
        worst_stall_at_the_start_ms=rounded(max(s for _, s in stalls) * 1000, 1),
        last_first_token_seconds=rounded(max(first), 3),
        seconds=rounded(time.perf_counter() - begun, 2),
        goal="no stall > 100 ms",
    )


async def _talk(session: Session, begun: float, first: list[float]) -> None:
    events = session.subscribe()
    await session.send(Say(text="talk"))
    async for record in events:
        if isinstance(record.event, TextDelta):
            first.append(time.perf_counter() - begun)
            break
    events.close()
    await session.wait_until_idle()


async def _tick(stalls: list[tuple[float, float]], begun: float) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(0.01)
        now = time.perf_counter()
        stalls.append((now - begun, now - before - 0.01))


def _resident() -> float:
    """kB of this process in memory."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    return 0.0


if __name__ == "__main__":
    main()
