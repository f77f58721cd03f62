"""What being able to undo costs: a build that touches thousands of files, with and without it.

Every build with undo has a plain one beside it, in turns before and after, and what was written
earlier is on the disk before each of them begins. The figures are medians of the ratios of such
pairs. The first build with undo also copies the whole project, later ones only look it over.
`--files N` and `--rounds N` change the size."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.measure import report
from hermes.core.effects import RunCommand
from hermes.core.ports import Workspace
from hermes.core.world import World
from hermes.undo.change_recorder import ChangeRecorder
from hermes.undo.history import CheckpointHistory
from hermes.undo.scanner import UndoLimits
from hermes.undo.store import CheckpointStore
from hermes.undo.workspace import UndoableWorkspace
from hermes.workspaces.local import LocalWorkspace

ROUNDS = 7
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
# Reads every source, compiles it and writes a result for each beside the others.
BUILD = "python3 -m compileall -q -f src"
CLEAN = "find src -name __pycache__ -prune -exec rm -r {} +"
SOURCE = '''
class Part{n}:
    """A part of the program, number {n}."""

    def __init__(self, name: str, size: int = {n}) -> None:
        self.name = name
        self.size = size

    def work(self, items: list[int]) -> dict[str, int]:
        found = {{}}
        for index, item in enumerate(items):
            if item % 2 == 0 and index < self.size:
                found[f"{{self.name}}-{{index}}"] = item * self.size
        return found


def main{n}(argument: str) -> int:
    part = Part{n}(argument)
    return sum(part.work(list(range({n}))).values())
'''


def make(root: Path, files: int) -> None:
    for number in range(files):
        path = root / "src" / f"package{number // 50}" / f"part{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SOURCE.format(n=number))


class Cost(NamedTuple):
    """Seconds on the wall, and of the processor: of this process and of the build."""

    wall: float
    own: float
    build: float

    @property
    def processor(self) -> float:
        return self.own + self.build


class Pair(NamedTuple):
    """A build with undo and the plain one next to it."""

    kept: Cost
    plain: Cost

    @property
    def wall(self) -> float:
        return self.kept.wall / self.plain.wall

    @property
    def processor(self) -> float:
        return self.kept.processor / self.plain.processor


async def run(workspace: Workspace, script: str) -> Cost:
    effect = RunCommand(script=script, cwd=workspace.root)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own, begun = time.process_time(), time.perf_counter()
    result = await workspace.run(effect, timeout=600, stop=asyncio.Event(), max_bytes=10_000)
    wall, own = time.perf_counter() - begun, time.process_time() - own
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.exit_code:
        raise SystemExit(result.output)
    used = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return Cost(wall, own, used)


async def build(plain: Workspace, workspace: Workspace) -> Cost:
    """From nothing, on a disk that has nothing left to write."""
    await run(plain, CLEAN)
    await asyncio.to_thread(os.sync)
    return await run(workspace, BUILD)


async def pair(plain: Workspace, kept: Workspace, *, plain_first: bool) -> Pair:
    if plain_first:
        floor = await build(plain, plain)
        return Pair(await build(plain, kept), floor)
    cost = await build(plain, kept)
    return Pair(cost, await build(plain, plain))


def protection_of(inner: Workspace, store: CheckpointStore, world: World) -> ChangeRecorder:
    return ChangeRecorder(
        store,
        inner.root,
        where=lambda: ("bench", "turn"),
        world=world,
        # The results of this build count as work, so that every one of them is followed.
        limits=UndoLimits(remade=frozenset()),
    )


async def measured(folder: Path, files: int, rounds: int) -> dict[str, object]:
    world = World()
    root = folder / "project"
    make(root, files)
    plain = LocalWorkspace(str(root), state=folder / "state", world=world, env=ENV)
    first, later = [], []
    await build(plain, plain)
    for number in range(rounds):
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        store = CheckpointStore(folder / "checkpoints")
        protection = protection_of(plain, store, world)
        kept = UndoableWorkspace(plain, lambda made=protection: made)  # type: ignore[misc]
        first.append(await pair(plain, kept, plain_first=number % 2 == 0))
        later.append(await pair(plain, kept, plain_first=number % 2 == 0))
        protection.close()
    facts = summary(first, later) | undone(store, world, root)
    await plain.close()
    return {"files": files, "rounds": rounds, **facts}


def summary(first: list[Pair], later: list[Pair]) -> dict[str, object]:
    floors = [each.plain for each in (*first, *later)]
    return {
        "build_ratio": _middle(each.wall for each in later),
        "build_cpu_ratio": _middle(each.processor for each in later),
        "own_cpu_s": _middle(each.kept.own - each.plain.own for each in later),
        "first_build_ratio": _middle(each.wall for each in first),
        "first_build_cpu_ratio": _middle(each.processor for each in first),
        "first_own_cpu_s": _middle(each.kept.own - each.plain.own for each in first),
        "floor_s": _middle(each.wall for each in floors),
        "floor_from_to_s": [round(pick(each.wall for each in floors), 3) for pick in (min, max)],
        "floor_cpu_s": _middle(each.processor for each in floors),
    }


def _middle(values: Iterable[float]) -> float:
    return round(median(values), 3)


def undone(store: CheckpointStore, world: World, root: Path) -> dict[str, object]:
    """The last build is taken back."""
    size = store.total()
    history = CheckpointHistory(store, world=world, limits=UndoLimits())
    begun = time.perf_counter()
    history.restore(history.plan("bench"), session="bench")
    return {
        "store_mb": round(size / 1e6, 1),
        "undo_s": round(time.perf_counter() - begun, 3),
        "results_left_after_undo": sum(1 for _ in root.rglob("*.pyc")),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    try:
        facts = asyncio.run(measured(Path(folder), options.files, options.rounds))
        report("undo", **facts, goal="build_ratio <= 1.1, build_cpu_ratio <= 1.1")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
