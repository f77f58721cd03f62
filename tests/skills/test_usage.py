"""Counters of skills: by skill and by version, in one file."""

from __future__ import annotations

import json

from hermes.skills.usage import MOST_VERSIONS, Outcomes, recently_used
from tests.skills.bench import Bench


def test_views_and_uses_are_counted_by_version(bench: Bench) -> None:
    bench.usages.record_creation("deploy", "agent")
    bench.usages.count_view("deploy", "v1")
    bench.usages.count_use("deploy", "v1")
    bench.usages.count_view("deploy", "v2")
    usage = bench.usages.of("deploy")
    assert (usage.created_by, usage.view_count, usage.use_count) == ("agent", 2, 1)
    at = usage.versions["v1"].last_at
    assert usage.versions == {
        "v1": Outcomes(views=1, uses=1, last_at=at),
        "v2": Outcomes(views=1, last_at=at),
    }


async def test_those_used_last_come_first(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.usages.count_view(name, "v")
        await bench.clock.advance(60)
    bench.usages.count_use("a", "v")
    assert recently_used(bench.skills) == ("a", "c", "b")


def test_the_file_has_all_fields(bench: Bench) -> None:
    bench.usages.count_view("deploy", "v")
    raw = json.loads((bench.skills / ".usage.json").read_bytes())
    assert set(raw["deploy"]) == {
        *("created_at", "created_by", "state", "pinned", "view_count", "use_count"),
        *("patch_count", "last_viewed_at", "last_used_at", "last_patched_at", "archived_at"),
        "versions",
    }


def test_a_damaged_file_counts_from_the_start(bench: Bench) -> None:
    bench.usages.count_view("deploy", "v")
    (bench.skills / ".usage.json").write_text("{torn")
    bench.usages.count_view("deploy", "v")
    assert bench.usages.of("deploy").view_count == 1


def test_old_versions_are_forgotten(bench: Bench) -> None:
    for n in range(MOST_VERSIONS + 5):
        bench.usages.count_view("deploy", f"v{n}")
    versions = bench.usages.of("deploy").versions
    assert (len(versions), f"v{MOST_VERSIONS + 4}" in versions) == (MOST_VERSIONS, True)
    assert bench.usages.of("deploy").view_count == MOST_VERSIONS + 5
