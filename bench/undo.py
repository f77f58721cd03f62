"""What being able to undo costs: a build that touches thousands of files, with and without it.

Both ways take turns in the same run, and the ratio of processor time is the
one to trust on a busy machine. The first build with undo also copies the whole project, later ones
only look it over. `--files N` changes the size."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.measure import report
from hermes.core.effects import RunCommand
from hermes.core.ports import Workspace
from hermes.core.world import World
from hermes.undo.coverage import Coverage, Retention
from hermes.undo.history import History
from hermes.undo.protection import Protection
from hermes.undo.store import Store
from hermes.undo.undoable import Undoable
from hermes.workspaces.local import LocalWorkspace

ROUNDS = 5
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
# Reads every source, compiles it and writes a result for each beside the others.
BUILD = "python3 -m compileall -q -f src"
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


async def build(workspace: Workspace, script: str) -> Cost:
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


def covered(inner: Workspace, store: Store, world: World) -> Undoable:
    protection = Protection(
        store,
        inner.root,
        where=lambda: ("bench", "turn"),
        world=world,
        # The results of this build count as work, so that every one of them is followed.
        cover=Coverage(remade=frozenset()),
        retention=Retention(),
    )
    return Undoable(inner, lambda: protection)


async def measured(folder: Path, files: int) -> dict[str, float]:
    world = World()
    root = folder / "project"
    make(root, files)
    inner = LocalWorkspace(str(root), state=folder / "state", world=world, env=ENV)
    store = Store(folder / "checkpoints")
    undoable = covered(inner, store, world)
    clean = "find src -name __pycache__ -prune -exec rm -r {} +"
    await build(inner, BUILD)
    await build(inner, clean)
    first_floor = await build(inner, BUILD)
    await build(inner, clean)
    first = await build(undoable, BUILD)
    floors, builds = [first_floor], []
    for _ in range(ROUNDS):
        await build(inner, clean)
        floors.append(await build(inner, BUILD))
        await build(inner, clean)
        builds.append(await build(undoable, BUILD))
    history = History(store, world=world, cover=Coverage(), retention=Retention())
    begun = time.perf_counter()
    plan = history.plan("bench")
    history.carry_out(plan, session="bench")
    undo_seconds = time.perf_counter() - begun
    left = sum(1 for _ in root.rglob("*.pyc"))
    await undoable.close()
    floor = min(each.wall for each in floors)
    processor = min(each.processor for each in floors)
    wall = min(each.wall for each in builds)
    return {
        "files": files,
        "build_s": round(wall, 3),
        "build_floor_s": round(floor, 3),
        "build_ratio": round(wall / floor, 3),
        "build_cpu_ratio": round(min(each.processor for each in builds) / processor, 3),
        "own_cpu_s": round(min(each.own for each in builds), 3),
        "build_cpu_floor_s": round(processor, 3),
        "first_build_s": round(first.wall, 3),
        "first_own_cpu_s": round(first.own, 3),
        "first_build_ratio": round(first.wall / floor, 3),
        "first_build_cpu_ratio": round(first.processor / processor, 3),
        "store_mb": round(store.total() / 1e6, 1),
        "undo_s": round(undo_seconds, 3),
        "results_left_after_undo": left,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=5_000)
    files = parser.parse_args().files
    folder = tempfile.mkdtemp()
    try:
        facts = asyncio.run(measured(Path(folder), files))
        report("undo", **facts, goal="build_cpu_ratio <= 1.1")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
