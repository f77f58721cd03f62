"""Usage counters and statistics of skills, and the state of the curator."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.world import Clock
from hermes.skills.files import lock_skills

if TYPE_CHECKING:
    from hermes.journal.journal import SqliteJournal
    from hermes.skills.library import SkillLibrary

STATE = ".curator_state"


class CuratorState(Value):
    last_run_at: float = 0
    paused: bool = False


def read_state(folder: Path) -> CuratorState:
    try:
        return decode(CuratorState, (folder / STATE).read_bytes())
    except (OSError, DecodeError):
        return CuratorState()


def write_state(folder: Path, state: CuratorState) -> None:
    replace_file(folder / STATE, encode(state))


def is_due(folder: Path, now: float, interval_hours: float) -> bool:
    """Return whether a run is due. The first call only starts the interval."""
    state = read_state(folder)
    if state.paused or not folder.is_dir():
        return False
    if not state.last_run_at:
        write_state(folder, replace(state, last_run_at=now))
        return False
    return now - state.last_run_at >= interval_hours * 3600


FILE = ".usage.json"
# Older versions count only in the totals.
MOST_VERSIONS = 20


class Outcomes(Value):
    """Counters of one version, keyed by a hash prefix."""

    views: int = 0
    uses: int = 0
    successes: int = 0
    failures: int = 0
    last_at: str = ""


class SkillUsage(Value, omit_defaults=False):
    created_at: str = ""
    created_by: str = ""
    state: Literal["active", "stale", "archived"] = "active"
    pinned: bool = False
    view_count: int = 0
    use_count: int = 0
    patch_count: int = 0
    last_viewed_at: str | None = None
    last_used_at: str | None = None
    last_patched_at: str | None = None
    archived_at: str | None = None
    versions: dict[str, Outcomes] = {}

    @property
    def last_at(self) -> str:
        """Time of the last activity."""
        moments = (self.created_at, self.last_viewed_at, self.last_used_at, self.last_patched_at)
        return max(moment or "" for moment in moments)


def read_usages(folder: Path) -> dict[str, SkillUsage]:
    try:
        return decode(dict[str, SkillUsage], (folder / FILE).read_bytes())
    except (OSError, DecodeError):
        return {}


def recently_used(folder: Path) -> tuple[str, ...]:
    """Return the names of skills by last use, newest first."""
    known = read_usages(folder)
    return tuple(sorted(known, key=lambda name: known[name].last_at, reverse=True))


class SkillUsageStore:
    """Counters in one file under a lock. They are best effort: an unreadable file restarts the
    counts."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def all(self) -> dict[str, SkillUsage]:
        return read_usages(self._folder)

    def of(self, name: str) -> SkillUsage:
        return self.all().get(name, SkillUsage())

    def count_view(self, name: str, version: str) -> None:
        self._count(name, version, views=1)

    def count_use(self, name: str, version: str) -> None:
        self._count(name, version, uses=1)

    def record_creation(self, name: str, by: str) -> None:
        at = self.timestamp()
        self.change(name, lambda now: SkillUsage(created_at=at, created_by=by, pinned=now.pinned))

    def record_patch(self, name: str) -> None:
        self.change(
            name,
            lambda now: replace(
                now, patch_count=now.patch_count + 1, last_patched_at=self.timestamp()
            ),
        )

    def pin(self, name: str, pinned: bool) -> None:
        self.change(name, lambda now: replace(now, pinned=pinned))

    def change(self, name: str, change: Callable[[SkillUsage], SkillUsage]) -> None:
        with lock_skills(self._folder):
            known = self.all()
            known[name] = change(known.get(name, SkillUsage(created_at=self.timestamp())))
            replace_file(self._folder / FILE, encode(known), durable=False)

    def _count(self, name: str, version: str, *, views: int = 0, uses: int = 0) -> None:
        at = self.timestamp()

        def add_counts(now: SkillUsage) -> SkillUsage:
            old = now.versions.get(version, Outcomes())
            fresh = replace(old, views=old.views + views, uses=old.uses + uses, last_at=at)
            others = {key: each for key, each in now.versions.items() if key != version}
            kept = dict(list(others.items())[-(MOST_VERSIONS - 1) :])
            return replace(
                now,
                state="active" if now.state == "stale" else now.state,
                view_count=now.view_count + views,
                use_count=now.use_count + uses,
                last_viewed_at=at if views else now.last_viewed_at,
                last_used_at=at if uses else now.last_used_at,
                versions={**kept, version: fresh},
            )

        self.change(name, add_counts)

    def timestamp(self) -> str:
        return datetime.fromtimestamp(self._clock.now(), UTC).isoformat(timespec="seconds")


# Other reasons for the end of a turn do not reflect on its skills.
GOOD = ("done",)
BAD = ("failed", "guardrail", "budget", "partial")


class _Result(Value):
    name: str = ""
    failed: bool = False
    details: JsonObject = {}


class _Finished(Value):
    result: _Result


class _Ended(Value):
    reason: str = ""


class SkillStats(Value):
    """Totals of a skill, and of each of its versions by hash prefix."""

    name: str
    views: int
    uses: int
    changes: int
    successes: int
    failures: int
    last_at: str
    pinned: bool = False
    state: str = "active"
    versions: dict[str, Outcomes] = {}


async def skill_stats(journal: SqliteJournal, library: SkillLibrary) -> tuple[SkillStats, ...]:
    """Return the statistics, most recently used first."""
    ends = await _ends(journal)
    rows: list[SkillStats] = []
    for name, usage in library.usages.all().items():
        versions = dict(usage.versions)
        for version, (good, bad) in ends.get(name, {}).items():
            old = versions.get(version, Outcomes())
            versions[version] = replace(
                old, successes=old.successes + good, failures=old.failures + bad
            )
        stats = SkillStats(
            name=name,
            views=usage.view_count,
            uses=usage.use_count,
            changes=usage.patch_count,
            successes=sum(each.successes for each in versions.values()),
            failures=sum(each.failures for each in versions.values()),
            last_at=usage.last_at,
            pinned=usage.pinned,
            state=usage.state,
            versions=versions,
        )
        rows.append(stats)
    return tuple(sorted(rows, key=lambda each: each.last_at, reverse=True))


async def _ends(journal: SqliteJournal) -> dict[str, dict[str, tuple[int, int]]]:
    """Count good and bad turns by skill and version."""
    # Only statistics need it, not every session that counts a use.
    from hermes.journal.usage_tally import skill_results

    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for finished, ended in await journal.reading(skill_results):
        try:
            result, reason = decode(_Finished, finished).result, decode(_Ended, ended).reason
        except DecodeError:
            continue
        name, version = result.details.get("name"), result.details.get("version")
        if result.name != "skill_view" or not name or not version or result.failed:
            continue
        good, bad = counts.setdefault(str(name), {}).get(str(version), (0, 0))
        counts[name][version] = (good + (reason in GOOD), bad + (reason in BAD))
    return counts
