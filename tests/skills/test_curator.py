"""Unused skills of the agent's own go to the archive; nobody else's, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.config.extension_settings import CuratorBackupSettings, CuratorSettings
from hermes.core.errors import NotFound, UsageError
from hermes.skills.curator import Curator, Move
from hermes.skills.history import Cause
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange
from hermes.skills.usage import CuratorState, is_due, write_state
from tests.skills.bench import Bench, skill_text

DAY = 86_400.0


def curator(bench: Bench, *needed: str, **settings: Any) -> Curator:
    return Curator(
        bench.store,
        bench.usages,
        bench.clock,
        CuratorSettings(**settings),
        needed=lambda: needed,
    )


def make(bench: Bench, *names: str) -> None:
    """Skills of the agent's own."""
    for name in names:
        text = skill_text(name, f"The matter of {name}")
        bench.store.apply(bench.change(name, text, action="create", category="own"))
        bench.usages.record_creation(name, "agent")


async def test_only_the_agents_own_unused_skills_are_archived(bench: Bench) -> None:
    make(bench, "idle", "busy", "pinned", "needed", "edited")
    bench.write("mine")
    bench.usages.pin("pinned", True)
    (bench.skills / "own/edited" / MAIN).write_text(skill_text("edited", "By a person"))
    await bench.clock.advance(100 * DAY)
    bench.usages.count_view("busy", "v")
    before = {name: bench.tree(f"own/{name}") for name in ("idle", "edited")}
    one = curator(bench, "needed")
    assert one.plan() == (Move(name="idle", to="archived", idle_days=100),)
    assert bench.names() == ["mine", "busy", "edited", "idle", "needed", "pinned"]
    assert one.run() == (Move(name="idle", to="archived", idle_days=100),)
    assert bench.names() == ["mine", "busy", "edited", "needed", "pinned"]
    assert one.list_archived() == ("idle",)
    assert bench.usages.of("idle").state == "archived"
    one.restore("idle")
    assert bench.tree("own/idle") == before["idle"]
    assert bench.tree("own/edited") == before["edited"]
    assert one.plan() == ()


async def test_copies_can_be_left_out(bench: Bench) -> None:
    make(bench, "idle")
    await bench.clock.advance(100 * DAY)
    one = curator(bench, backup=CuratorBackupSettings(enabled=False))
    assert [move.to for move in one.run()] == ["archived"]
    assert one.backups() == ()
    assert one.backup() in one.backups()


async def test_a_skill_is_stale_before_it_is_archived(bench: Bench) -> None:
    make(bench, "idle")
    await bench.clock.advance(31 * DAY)
    assert [move.to for move in curator(bench).run()] == ["stale"]
    assert (bench.usages.of("idle").state, curator(bench).plan()) == ("stale", ())
    bench.usages.count_view("idle", "v")
    assert bench.usages.of("idle").state == "active"


async def test_a_copy_is_made_before_and_brings_all_back(bench: Bench) -> None:
    make(bench, "one", "two")
    bench.write("mine")
    await bench.clock.advance(100 * DAY)
    one = curator(bench)
    one.run()
    (stamp,) = one.backups()
    await bench.clock.advance(60)
    bench.store.apply(SkillChange(name="mine", action="delete", cause=Cause(who="user")))
    assert bench.names() == []
    assert sorted(one.rollback(stamp)) == ["mine", "one", "two"]
    assert bench.names() == ["mine", "one", "two"]
    assert len(one.backups()) == 2
    with pytest.raises(NotFound):
        one.rollback("19990101T000000Z")


async def test_only_so_many_copies_are_kept(bench: Bench) -> None:
    bench.write("mine")
    one = curator(bench, backup=CuratorBackupSettings(keep=2))
    stamps = []
    for _ in range(4):
        stamps.append(one.backup())
        await bench.clock.advance(60)
    assert one.backups() == tuple(stamps[-2:])


def test_nothing_is_put_over_what_is_there(bench: Bench) -> None:
    make(bench, "one")
    one = curator(bench)
    one.archive("one")
    bench.write("own/one", skill_text("one", "Another"))
    with pytest.raises(UsageError, match="exists; move it"):
        one.restore("one")
    with pytest.raises(NotFound):
        one.restore("absent")


def test_a_tampered_note_leads_nowhere(bench: Bench) -> None:
    make(bench, "one")
    one = curator(bench)
    one.archive("one")
    (bench.skills / ".archive/one.place").write_text("../../outside")
    with pytest.raises(UsageError):
        one.restore("one")


def test_the_first_look_only_begins_the_count(bench: Bench) -> None:
    bench.skills.mkdir()
    hours = 168
    assert not is_due(bench.skills, 1000.0, hours)
    assert not is_due(bench.skills, 1000.0 + 167 * 3600, hours)
    assert is_due(bench.skills, 1000.0 + 168 * 3600, hours)
    write_state(bench.skills, CuratorState(last_run_at=1000.0, paused=True))
    assert not is_due(bench.skills, 1e9, hours)


async def test_no_more_than_so_many_are_kept_at_hand(bench: Bench) -> None:
    bench.write("mine")
    mine, most = bench.tree("mine"), 5
    one = curator(bench, most_skills=most)
    for number in range(20):
        await bench.clock.advance(60)
        make(bench, f"own-{number:02}")
        if number == 3:
            bench.usages.pin("own-03", True)
        bench.usages.count_use("own-00", "v")
        one.archive_surplus()
        assert len(bench.names()) <= most + 1
    assert bench.names() == ["mine", "own-00", "own-03", "own-17", "own-18", "own-19"]
    assert len(one.list_archived()) == 15 and bench.tree("mine") == mine
    assert one.plan() == () == one.archive_surplus()
