"""Whether a long past slows a start: `hermes -z hi` with many messages in the journal."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from bench.measure import HERMES, best_cost, report, rounded
from bench.serving import served
from hermes.core.events import DurableEvent, MessageReceived, ReplyAdded, SessionOpened
from hermes.core.messages import AssistantMessage, Text, Usage, user_says
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.testing.steps import says

PER_SESSION = 1_000
WORDS = "the agent reads the file and writes a short note about what it has found in there "


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=50_000)
    count = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as full:
        asyncio.run(_fill(Path(full) / "hermes.db", count))
        with served([says("hello")], loop=True) as url:
            costs = {}
            for home in (empty, full):
                env = {
                    **os.environ,
                    "HERMES_HOME": home,
                    "OPENAI_BASE_URL": f"{url}/v1",
                    "OPENAI_API_KEY": "k",
                }
                costs[home] = best_cost([HERMES, "-m", "test", "-z", "hi"], env, times=7)
        report(
            "start_with_history",
            messages=count,
            cpu_seconds=rounded(costs[full].cpu),
            wall_seconds=rounded(costs[full].wall),
            floor_empty_cpu=rounded(costs[empty].cpu),
            floor_empty_wall=rounded(costs[empty].wall),
            ratio=rounded(costs[full].cpu / costs[empty].cpu, 2),
            ratio_wall=rounded(costs[full].wall / costs[empty].wall, 2),
            goal="ratio <= 1.2",
        )


async def _fill(path: Path, count: int) -> None:
    world = World()
    async with SqliteJournal(path, world) as journal:
        for start in range(0, count, PER_SESSION):
            opened = SessionOpened(source="bench", cwd="/", model="m", provider="p", system="s")
            lease, _ = await journal.create(f"bench_{start:09}", [opened])
            size = min(PER_SESSION, count - start)
            await journal.append(lease, [_event(start + n) for n in range(size)])
            await journal.release(lease)


def _event(number: int) -> DurableEvent:
    text = f"{number} {WORDS * 3}"
    if number % 2:
        return MessageReceived(message=user_says(text))
    message = AssistantMessage(parts=(Text(text=text),))
    return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")


if __name__ == "__main__":
    main()
