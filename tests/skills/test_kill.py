"""A process that dies while it changes a skill leaves the old one or the new one, never a half."""

from __future__ import annotations

import multiprocessing
import signal
from pathlib import Path

import pytest

from hermes.core.world import World
from hermes.skills.history import Cause
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange
from hermes.testing.kill import kill_points, walk
from tests.skills.bench import Bench, skill_text

OLD = {MAIN: skill_text("deploy", "The old one").encode(), "references/a.md": b"old a"}
NEW = {
    MAIN: skill_text("deploy", "The new one").encode() + b"x" * 50_000,
    "references/b.md": b"new b",
    "scripts/run.sh": b"echo new",
}
# Forked by a process that has no threads: those of the tests may hold a lock in that moment.
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload([__name__])
WHATS = ("create", "patch", "replace", "delete", "propose", "revert")


def work(folder: Path, point: str, what: str) -> None:
    bench = Bench(folder, world=World(kill_point=kill_points(point)))
    cause = Cause(who="agent", session="s")
    match what:
        case "create":
            bench.store.apply(
                SkillChange(name="deploy", action="create", cause=cause, files={**NEW})
            )
        case "patch":
            files: dict[str, bytes | None] = {MAIN: NEW[MAIN]}
            bench.store.apply(SkillChange(name="deploy", action="patch", cause=cause, files=files))
        case "replace":
            change = SkillChange(
                name="deploy", action="edit", cause=cause, files={**NEW}, whole=True
            )
            bench.store.apply(change)
        case "delete":
            bench.store.apply(SkillChange(name="deploy", action="delete", cause=cause))
        case "propose":
            change = SkillChange(
                name="deploy", action="edit", cause=cause, files={**NEW}, whole=True
            )
            bench.store.promote(bench.store.propose(change))
        case _:
            first = bench.store.history("deploy")[0]
            bench.store.revert("deploy", first.id, cause)


def run(folder: Path, point: str, what: str) -> int | None:
    """How a process ends that does this and dies at the point."""
    process = CHILDREN.Process(target=work, args=(folder, point, what))
    process.start()
    process.join(60)
    return process.exitcode


def prepared(folder: Path, what: str) -> Bench:
    bench = Bench(folder)
    if what != "create":
        old: dict[str, bytes | None] = {**OLD}
        bench.store.apply(
            SkillChange(name="deploy", action="create", cause=Cause(who="agent"), files=old)
        )
    if what == "revert":
        new: dict[str, bytes | None] = {**NEW}
        cause = Cause(who="agent")
        bench.store.apply(
            SkillChange(name="deploy", action="e", cause=cause, files=new, whole=True)
        )
    return bench


def ends(what: str) -> list[dict[str, bytes]]:
    before: dict[str, bytes] = {"create": {}, "revert": NEW}.get(what, OLD)
    after: dict[str, bytes] = {
        "delete": {},
        "patch": {**OLD, MAIN: NEW[MAIN]},
        "revert": OLD,
    }.get(what, NEW)
    return [before, after]


@pytest.mark.parametrize("what", WHATS)
def test_a_skill_is_never_half_written(tmp_path: Path, what: str) -> None:
    record = tmp_path / "points"
    prepared(tmp_path / "dry", what)
    work(tmp_path / "dry", f"?{record}", what)
    points = walk(record)
    assert len(points) >= 3
    for number, point in enumerate(points):
        folder = tmp_path / str(number)
        prepared(folder, what)
        assert run(folder, point, what) == -signal.SIGKILL, point
        bench = Bench(folder)
        left = bench.tree("deploy") if (bench.skills / "deploy").exists() else {}
        assert left in ends(what), point
        assert bench.store.scan().broken == ()
        if left:
            # It goes on from there: the skill counts as the agent's own, and can be changed.
            text = skill_text("deploy", "After the crash")
            bench.store.apply(bench.change("deploy", text))
            assert bench.tree("deploy")[MAIN].decode() == text
            assert bench.store.provenance(bench.store.find("deploy")) == "agent", point
