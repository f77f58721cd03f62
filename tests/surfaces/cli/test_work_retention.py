"""What finished plans, sub-agents and scripts left is removed once a day, oldest first."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from hermes.config.delegation_settings import WorkRetentionSettings
from hermes.config.home import Home
from hermes.core.world import World
from hermes.homes.work_files import SweepReport, last_sweep, list_work_files, sweep_if_due
from hermes.journal.archive import SessionArchive
from hermes.journal.journal import SqliteJournal
from tests.surfaces.cli.past import DAY, add_session
from tests.surfaces.cli.program import Program

SETTINGS = WorkRetentionSettings()
LOG = "cache/delegation/live/deleg_1/0.log"
SPILL = "sessions/s1/scratch/sub_1_0.txt"
PLAN = "sessions/s1/scratch/plan_ab12-s1.json"
SCRIPT = "sessions/s1/scratch/exec-1.txt"
OTHER = "sessions/s1/scratch/notes.txt"


def add_file(home: Path, name: str, *, days: float, size: int = 10) -> None:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    at = time.time() - days * DAY
    os.utime(path, (at, at))


def sweep(
    root: Path, settings: WorkRetentionSettings = SETTINGS, *, later_days: float = 0
) -> SweepReport | None:
    async def work() -> SweepReport | None:
        home = Home(root)
        async with SqliteJournal(home.journal, World()) as journal:
            now = time.time() + later_days * DAY
            return await sweep_if_due(home, settings, SessionArchive(journal, home), now)

    return asyncio.run(work())


def left(root: Path) -> set[str]:
    return {str(each.path.relative_to(root)) for each in list_work_files(Home(root))}


def test_each_kind_of_file_has_an_age(program: Program) -> None:
    home = program.home
    for name in (LOG, SPILL, PLAN, SCRIPT, OTHER):
        add_file(home, name, days=5)
    report = sweep(home)
    assert report is not None and (report.files, report.bytes) == (1, 10)
    assert left(home) == {LOG, SPILL, PLAN}
    assert sweep(home) is None, "once a day"
    assert sweep(home, later_days=3) is not None
    assert left(home) == {PLAN}
    assert not (home / LOG).parent.exists()
    sweep(home, later_days=26)
    assert left(home) == set()
    assert (home / OTHER).exists()


def test_the_oldest_files_go_when_all_are_too_large(program: Program) -> None:
    for days, name in enumerate((SCRIPT, LOG, PLAN)):
        add_file(program.home, name, days=days + 0.1, size=600_000)
    sweep(program.home, WorkRetentionSettings(max_mb=1))
    assert left(program.home) == {SCRIPT}


def test_only_old_finished_child_sessions_are_removed(program: Program) -> None:
    home = program.home
    add_session(home, "parent", days=90)
    add_session(home, "sub_old", days=8, source="subagent", ended="completed", parent="parent")
    add_session(home, "sub_owed", days=8, source="background", parent="parent")
    add_session(home, "sub_told", days=8, source="background", ended="reported", parent="parent")
    add_session(home, "sub_new", days=6, source="subagent", ended="completed", parent="parent")
    report = sweep(home)
    assert report is not None and report.sessions == 2
    listed = program("sessions", "list", "--children", "--json").json
    assert {each["id"] for each in listed} == {"parent", "sub_owed", "sub_new"}


def test_doctor_reports_what_is_stored_and_what_was_removed(program: Program) -> None:
    add_file(program.home, SCRIPT, days=5, size=200_000)
    add_file(program.home, PLAN, days=5, size=100_000)
    sweep(program.home)
    assert last_sweep(Home(program.home)) is not None
    out = program("doctor").out
    assert "1 file(s) of plans, sub-agents and scripts have 0.1 MB" in out
    assert "removed 0 sub-agent session(s) and 1 file(s) (0.2 MB)" in out
