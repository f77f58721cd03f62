"""Skill statistics: usage counters, and the outcomes of turns that loaded a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value, replace
from hermes.journal.usage_tally import skill_results
from hermes.skills.library import SkillLibrary
from hermes.skills.usage import Outcomes

if TYPE_CHECKING:
    from hermes.journal.journal import SqliteJournal

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
    """Returns the statistics, most recently used first."""
    ends = await _ends(journal)
    found: list[SkillStats] = []
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
        found.append(stats)
    return tuple(sorted(found, key=lambda each: each.last_at, reverse=True))


async def _ends(journal: SqliteJournal) -> dict[str, dict[str, tuple[int, int]]]:
    """Counts good and bad turns by skill and version."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for finished, ended in await journal.reading(skill_results):
        try:
            result, reason = decode(_Finished, finished).result, decode(_Ended, ended).reason
        except DecodeError:
            continue
        name, version = result.details.get("name"), result.details.get("version")
        if result.name != "skill_view" or not name or not version or result.failed:
            continue
        good, bad = found.setdefault(str(name), {}).get(str(version), (0, 0))
        found[name][version] = (good + (reason in GOOD), bad + (reason in BAD))
    return found
