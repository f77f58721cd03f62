"""Removes what finished work leaves behind: child sessions, live logs and long outputs."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.config.delegation_settings import WorkRetentionSettings
from hermes.config.diagnostics import Diagnostic, ok, warning
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.caps import DAY_SECONDS, day_of
from hermes.journal.archive import SessionArchive
from hermes.journal.listing import CHILD_SOURCES, SessionFilter

MB = 1_000_000
LIVE_LOGS = "delegation/live"
# The files of each kind in the scratch folder of a session.
_SCRATCH = {
    "plan": ("plan_*.json",),
    "delegation": ("sub_*.txt",),
    "exec": ("exec-*.txt", "rpc-*"),
}


class WorkFile(NamedTuple):
    """A file that can be removed once its work is old."""

    changed_at: float
    size: int
    path: Path
    kind: str


class SweepReport(Value):
    """What the last sweep removed, and on which day since 1970 (UTC) it ran."""

    day: int
    sessions: int = 0
    files: int = 0
    bytes: int = 0


def list_work_files(home: Home) -> list[WorkFile]:
    """List the files of plans, child sessions and scripts, oldest first."""
    return sorted(_find_files(home))


async def sweep_if_due(
    home: Home, settings: WorkRetentionSettings, archive: SessionArchive, now: float
) -> SweepReport | None:
    """Remove what is old at the first call of a day; None at later calls."""
    before = last_sweep(home)
    if before is not None and before.day == day_of(now):
        return None
    sessions = 0
    for source in CHILD_SOURCES:
        wanted = SessionFilter(source=source, ended=True, archived=None)
        age = settings.delegation_days * DAY_SECONDS
        pruned = await archive.prune(age, wanted, dry_run=False, archive=False)
        sessions += len(pruned.removed)
    removed = await to_thread(_remove_old, home, settings, now)
    report = SweepReport(
        day=day_of(now),
        sessions=sessions,
        files=len(removed),
        bytes=sum(each.size for each in removed),
    )
    home.ensure_folder(home.cache)
    await to_thread(replace_file, _report_file(home), encode(report))
    return report


def last_sweep(home: Home) -> SweepReport | None:
    try:
        return decode(SweepReport, _report_file(home).read_bytes())
    except (OSError, DecodeError):
        return None


def storage_findings(config: Config) -> list[Diagnostic]:
    """Describe for `hermes doctor` what plans, child sessions and scripts occupy."""
    files, limit = list_work_files(config.home), config.settings.retention.max_mb
    size = sum(each.size for each in files)
    text = f"{len(files)} file(s) of plans, sub-agents and scripts have {size / MB:.1f} MB"
    found = [ok(text)]
    if size > limit * MB:
        fix = "the next start of a chat on another day removes the oldest"
        found = [warning("retention", f"{text}, of at most {limit} MB", fix=fix)]
    if last := last_sweep(config.home):
        found.append(
            ok(
                f"the last clean-up removed {last.sessions} sub-agent session(s) and {last.files} "
                f"file(s) ({last.bytes / MB:.1f} MB)"
            )
        )
    return found


def _remove_old(home: Home, settings: WorkRetentionSettings, now: float) -> list[WorkFile]:
    days = {
        "plan": settings.plans_days,
        "delegation": settings.delegation_days,
        "exec": settings.exec_days,
    }
    files = list_work_files(home)
    excess = sum(each.size for each in files) - settings.max_mb * MB
    removed = []
    for each in files:
        if excess > 0 or each.changed_at < now - days[each.kind] * DAY_SECONDS:
            each.path.unlink(missing_ok=True)
            excess -= each.size
            removed.append(each)
    for folder in (home.cache / LIVE_LOGS).glob("*/"):
        # Only an empty one can be removed.
        with suppress(OSError):
            folder.rmdir()
    return removed


def _find_files(home: Home) -> Iterator[WorkFile]:
    yield from _stat((home.cache / LIVE_LOGS).glob("*/*.log"), "delegation")
    for kind, patterns in _SCRATCH.items():
        for pattern in patterns:
            yield from _stat(home.sessions.glob(f"*/scratch/{pattern}"), kind)


def _stat(paths: Iterator[Path], kind: str) -> Iterator[WorkFile]:
    for path in paths:
        with suppress(OSError):
            found = path.lstat()
            yield WorkFile(found.st_mtime, found.st_size, path, kind)


def _report_file(home: Home) -> Path:
    return home.cache / "work_retention.json"
