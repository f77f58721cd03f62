"""Run as an ordinary user: destroy a project with locked files and folders, and take it back."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401
import os
import sys
from pathlib import Path

# All that is needed later too: an ordinary user may not be able to read where it comes from.
from tests.undo.conftest import Agent

NOBODY = 65534


async def main(folder: Path) -> None:
    agent = Agent(folder)
    agent.fill({"a": "a", "locked/x": "x", "locked/deep/y": "y", "shut/z": "z"})
    (agent.root / "a").chmod(0o444)
    (agent.root / "locked").chmod(0o555)
    before = agent.picture()
    await agent.did("chmod u+w locked; rm -rf locked a; chmod 000 shut")
    agent.turn = "turn_2"
    await agent.run("chmod 700 shut; rm -rf shut; mkdir shut; chmod 500 shut")
    done = agent.undo(turn="turn_1")
    assert done.lost == (), done
    sys.stdout.write("same\n" if agent.picture() == before else f"{agent.picture()}\n{before}\n")
    await agent.close()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    os.umask(0o022)
    place.mkdir()
    asyncio.run(main(place))
