"""Old checkpoints go by age, number and size, and never what is still needed."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.core.world import World
from hermes.testing.clock import VirtualClock
from hermes.undo import retention as upkeep
from hermes.undo.scanner import MB, UndoLimits
from tests.undo.conftest import Agent

DAY = 86_400


async def turns(agent: Agent, count: int, size: int = 100) -> None:
    for number in range(count):
        agent.turn = f"turn_{number}"
        (agent.root / "a").write_bytes(os.urandom(size))
        await agent.did("rm a")


async def test_only_so_many_turns_of_a_project_stay(agent: Agent) -> None:
    await turns(agent, 6)
    now = agent.world.clock.now()
    done = upkeep.prune(agent.store, UndoLimits(max_snapshots=4), now)
    assert done.turns == 2
    assert len(agent.checkpoints()) == 4
    agent.undo()
    assert (agent.root / "a").exists()


async def test_old_turns_go(agent: Agent) -> None:
    await turns(agent, 3)
    later = agent.world.clock.now() + 8 * DAY
    await agent.close()
    assert upkeep.prune(agent.store, UndoLimits(), later).turns == 3
    assert agent.checkpoints() == ()


async def test_the_running_session_keeps_its_last_turn_whatever_happens(agent: Agent) -> None:
    await turns(agent, 3)
    later = agent.world.clock.now() + 30 * DAY
    upkeep.prune(agent.store, UndoLimits(max_snapshots=1, max_total_bytes=1), later)
    assert len(agent.checkpoints()) == 1
    agent.undo()
    assert (agent.root / "a").exists()


async def test_a_full_store_throws_the_oldest_away_first(tmp_path: Path) -> None:
    agent = Agent(tmp_path, limits=UndoLimits(max_total_bytes=4 * MB))
    await turns(agent, 8, size=MB)
    assert agent.store.total() < 5 * MB
    agent.undo()
    assert (agent.root / "a").stat().st_size == MB
    assert 1 <= len(agent.checkpoints()) < 9
    await agent.close()


async def test_contents_are_compressed_where_it_helps(agent: Agent) -> None:
    agent.fill({f"f{n}": f"{n} the same line again and again\n" * 500 for n in range(40)})
    before = agent.picture()
    await agent.did("rm f*")
    total = agent.store.total()
    assert upkeep.compress(agent.store) > 500_000
    upkeep.sweep(agent.store)
    assert agent.store.total() < total
    agent.undo()
    assert agent.picture() == before


async def test_clearing_leaves_nothing_when_nobody_is_there(agent: Agent) -> None:
    await turns(agent, 2, size=MB)
    await agent.close()
    done = agent.history.clear()
    assert done.turns == 2
    assert agent.checkpoints() == ()
    assert list(agent.store.objects.iterdir()) == []
    with agent.store.reading() as db:
        assert db.execute("SELECT COUNT(*) FROM blobs").fetchone()[0] == 0


async def test_what_was_thrown_away_is_copied_again_when_needed(agent: Agent) -> None:
    agent.fill({"a": "a", "b": "b"})
    await agent.did("rm b")
    with agent.store.writing() as db:
        db.execute("DELETE FROM blobs")
        db.execute("INSERT OR REPLACE INTO meta VALUES('generation', 99)")
    agent.turn = "turn_2"
    await agent.did("rm a")
    agent.undo()
    assert (agent.root / "a").read_text() == "a"


async def test_pruning_by_itself_happens_once_in_a_while(tmp_path: Path) -> None:
    clock = VirtualClock()
    agent = Agent(tmp_path, world=World(clock=clock))
    await turns(agent, 3)
    retention = UndoLimits(max_snapshots=1)
    upkeep.prune_if_due(agent.store, UndoLimits(max_snapshots=2), clock.now(), 24)
    assert len(agent.checkpoints()) == 2
    upkeep.prune_if_due(agent.store, retention, clock.now() + 3_600, 24)
    assert len(agent.checkpoints()) == 2
    upkeep.prune_if_due(agent.store, retention, clock.now() + 25 * 3_600, 24)
    assert len(agent.checkpoints()) == 1
    await agent.close()
