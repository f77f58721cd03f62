"""Shell rounds: a trivial command and eight sleeps side by side, against bare bash in the same run,
and the same command by every means of confinement that works here.

Prints one JSON object; run with `python bench/shell.py`."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from hermes.core.effects import RunCommand
from hermes.core.world import World
from hermes.workspaces.confinement.sandbox import Confinement, Wanted, find_means
from hermes.workspaces.files import find_program
from hermes.workspaces.local import LocalWorkspace

ROUNDS = 100
ENV = {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8"}
BASH = find_program("bash", os.defpath) or "/bin/bash"


def bare(script: str) -> int:
    return os.posix_spawn(BASH, ("bash", "-c", script), ENV)


def bare_round() -> float:
    started = time.perf_counter()
    os.waitpid(bare("true"), 0)
    return (time.perf_counter() - started) * 1_000


def bare_sleeps() -> float:
    started = time.perf_counter()
    for pid in [bare("sleep 0.2; true") for _ in range(8)]:
        os.waitpid(pid, 0)
    return time.perf_counter() - started


async def command(workspace: LocalWorkspace, script: str) -> None:
    await workspace.run(
        RunCommand(script=script, cwd=workspace.cwd),
        timeout=60,
        stop=asyncio.Event(),
        max_bytes=50_000,
    )


async def confined(folder: Path, wanted: Wanted) -> dict[str, float]:
    """Its round and that of the open shell, in turns; nothing where the means does not work."""
    if find_means(wanted, ENV["PATH"])[0] is None:
        return {}
    wishes = (Confinement(), Confinement(wanted=wanted, network=True, ordinary=True))
    (folder / "project").mkdir(exist_ok=True)
    places = [
        LocalWorkspace(
            str(folder / "project"),
            state=folder / f"state-{wanted}-{wish.wanted}",
            world=World(),
            env=ENV,
            confinement=wish,
        )
        for wish in wishes
    ]
    rounds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for place, times in zip(places, rounds, strict=True):
            started = time.perf_counter()
            await command(place, "true")
            times.append((time.perf_counter() - started) * 1_000)
    for place in places:
        await place.close()
    plain, inside = (statistics.median(times) for times in rounds)
    return {f"{wanted}_round_ms": round(inside, 2), f"{wanted}_more_ms": round(inside - plain, 2)}


async def measured(folder: Path) -> dict[str, float]:
    workspace = LocalWorkspace(str(folder), state=folder / "state", world=World(), env=ENV)
    # No shell runs yet.
    started = time.perf_counter()
    await asyncio.gather(*(command(workspace, "sleep 0.2") for _ in range(8)))
    cold = time.perf_counter() - started
    floors, rounds = [], []
    processor = time.process_time()
    for _ in range(ROUNDS):
        floors.append(bare_round())
        started = time.perf_counter()
        await command(workspace, "true")
        rounds.append((time.perf_counter() - started) * 1_000)
    processor = (time.process_time() - processor) * 1_000 / ROUNDS
    sleeps_floor = min(bare_sleeps() for _ in range(3))
    sleeps = []
    for _ in range(3):
        started = time.perf_counter()
        await asyncio.gather(*(command(workspace, "sleep 0.2") for _ in range(8)))
        sleeps.append(time.perf_counter() - started)
    await workspace.close()
    floor, wall = statistics.median(floors), statistics.median(rounds)
    return {
        "round_ms": round(wall, 2),
        "round_worst_ms": round(max(rounds), 2),
        "round_floor_ms": round(floor, 2),
        "round_ratio": round(wall / floor, 2),
        "round_and_floor_cpu_ms": round(processor, 2),
        "eight_sleeps_cold_s": round(cold, 3),
        "eight_sleeps_s": round(min(sleeps), 3),
        "eight_sleeps_worst_s": round(max(sleeps), 3),
        "eight_sleeps_floor_s": round(sleeps_floor, 3),
        "eight_sleeps_ratio": round(min(sleeps) / sleeps_floor, 2),
        **await confined(folder, "landlock"),
        **await confined(folder, "bubblewrap"),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measured(Path(folder)))))


if __name__ == "__main__":
    main()
