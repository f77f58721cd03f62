"""A process with several sessions that talk all at once until a cap stops them."""

from __future__ import annotations

import asyncio
import os
import sys

from hermes.app.app import App
from hermes.config.home import resolve_home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.errors import NotFound
from hermes.core.events import Record, TurnEnded
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import SystemClock, World


class QuickClock(SystemClock):
    """Waits are a hundred times as short."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 100)


async def main(names: list[str], turns: int) -> None:
    env = dict(os.environ)
    config = load(resolve_home(env), env=env)
    async with (
        App(config, env=env, world=World(clock=QuickClock())) as app,
        asyncio.TaskGroup() as group,
    ):
        for name in names:
            group.create_task(work(app, name, turns))


async def work(app: App, name: str, turns: int) -> None:
    session = await entered(app, name)
    events = session.subscribe()
    # What the process before this one did not end comes first.
    session.continue_unfinished()
    await session.wait_until_idle()
    for turn in range(turns):
        await session.send(Say(text=f"{name} goes on ({turn})"))
        await session.wait_until_idle()
        if (await newest_end(app, name)) == "paused":
            break
    events.close()
    print(name, flush=True)  # noqa: T201


async def entered(app: App, name: str) -> Session:
    """Sessions whose names begin alike are parts of one job; those of a tree also work for the same
    turn."""
    job = name.partition("-")[0]
    task = f"turn of {job}" if job.startswith("tree") else ""
    opening = SessionRequest(source="test", attended=False, session_id=name, job=job, task=task)
    try:
        await app.archive.find(name)
    except NotFound:
        return await app.open(opening)
    return await app.open(SessionRequest(source="test", attended=False, resume=name))


async def newest_end(app: App, name: str) -> str:
    records: tuple[Record, ...] = await app.journal.read(name)
    ends = [r.event.reason for r in records if isinstance(r.event, TurnEnded)]
    return ends[-1] if ends else ""


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2:], int(sys.argv[1])))
