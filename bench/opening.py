"""What it costs to open one more session in a process that has some: a server does it all day.

The floor is looking at every skill of the home, which each new session must do."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from bench.measure import report, rounded
from bench.serving import served
from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.testing.steps import says

TIMES = 9
SESSIONS = 20


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, served([says("hi")], loop=True) as url:
        asyncio.run(_run(Path(folder), url))


async def _run(folder: Path, url: str) -> None:
    env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k", "HOME": str(folder)}
    config = load(Home(folder / "home"), env=env, flags={"model.default": "test"})
    async with App(config, env=env, world=World()) as app:
        wish = SessionRequest(source="api", platform="api", attended=False, cwd=str(folder))
        await app.open(wish)
        costs, floors = [], []
        for _ in range(TIMES):
            begun = time.process_time()
            for _ in range(SESSIONS):
                await app.open(wish)
            costs.append((time.process_time() - begun) / SESSIONS)
            begun = time.process_time()
            for _ in range(SESSIONS):
                _look(str(folder / "home" / "skills"))
            floors.append((time.process_time() - begun) / SESSIONS)
    report(
        "open_session",
        cpu_ms=rounded(min(costs) * 1000, 3),
        floor_looking_at_skills_ms=rounded(min(floors) * 1000, 3),
        ratio=rounded(min(costs) / min(floors), 2),
        goal="cpu <= 2 ms",
    )


def _look(folder: str) -> None:
    """Every folder of skills and the time of each skill."""
    with os.scandir(folder) as found:
        for each in found:
            if each.name == "SKILL.md":
                each.stat()
                return
            if each.is_dir() and not each.name.startswith("."):
                _look(each.path)


if __name__ == "__main__":
    main()
