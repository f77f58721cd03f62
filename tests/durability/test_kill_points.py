"""A run that is killed at any of its points loses nothing, and does nothing twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.durability.kills import Death, NewScenario, points_of, survive_all
from tests.durability.scenarios import Background, Tools, Words

# Points of a run that only the other scenarios have, or where they differ.
WORDS = ("message.received:1", "reply.received:1", "turn.ending:1", "turn.ended:1")
BACKGROUND = ("tool.started:1", "process.spawned:1", "tool.effect:1", "model.called:2")
SEEDS = 20


async def test_a_run_with_tools_passes_every_boundary(tmp_path: Path) -> None:
    names = {point.partition(":")[0] for point in await points_of(Tools, tmp_path)}
    assert names >= {
        "message.received",
        "turn.started",
        "model.called",
        "reply.received",
        "tool.started",
        "tool.effect",
        "tool.finished",
        "turn.ending",
        "turn.ended",
        "journal.before_commit",
        "journal.after_commit",
    }


async def test_a_run_with_tools_survives_its_death_at_each_name(tmp_path: Path) -> None:
    points = await points_of(Tools, tmp_path / "whole")
    deaths = [Death((point,)) for point in _last_of_each(points)]
    assert await survive_all(Tools, tmp_path, deaths) == len(deaths)


async def test_an_answer_survives_a_death_before_and_after_it_is_safe(tmp_path: Path) -> None:
    deaths = [Death((point,), seed=1) for point in WORDS]
    assert await survive_all(Words, tmp_path, deaths) == len(deaths)


async def test_a_background_process_survives_and_is_found_again(tmp_path: Path) -> None:
    deaths = [Death((point,), seed=1) for point in BACKGROUND]
    assert await survive_all(Background, tmp_path, deaths) == len(deaths)


async def test_a_run_that_goes_on_survives_its_own_death(tmp_path: Path) -> None:
    deaths = [
        Death(("tool.started:2", "model.called:1"), seed=2),
        Death(("journal.after_commit:4", "tool.effect:1"), seed=3),
        Death(("message.received:1", "tool.finished:1", "turn.ending:1"), seed=4),
    ]
    assert await survive_all(Tools, tmp_path, deaths) == len(deaths)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("new", [Words, Tools, Background])
async def test_every_death_with_every_seed(tmp_path: Path, new: NewScenario, seed: int) -> None:
    points = await points_of(new, tmp_path / "whole", seed)
    deaths = [Death((point,), seed) for point in points]
    assert await survive_all(new, tmp_path, deaths) > 0.9 * len(deaths)


@pytest.mark.slow
@pytest.mark.parametrize("new", [Words, Tools, Background])
async def test_one_death_after_the_other(tmp_path: Path, new: NewScenario) -> None:
    chance = random.Random(0)
    points = await points_of(new, tmp_path / "whole")
    deaths = [Death(tuple(chance.choices(points, k=3)), seed) for seed in range(1, 40)]
    await survive_all(new, tmp_path, deaths)


@pytest.mark.slow
@pytest.mark.parametrize("new", [Words, Tools, Background])
async def test_a_death_at_any_moment(tmp_path: Path, new: NewScenario) -> None:
    chance = random.Random(1)
    moments = [f"{chance.uniform(0.1, 0.6):.3f} s" for _ in range(100)]
    await survive_all(new, tmp_path, [Death((at,), seed) for seed, at in enumerate(moments)])


def _last_of_each(points: tuple[str, ...]) -> list[str]:
    """The last time that each name is passed, but for the last commit of all: that one only lets
    go of the session."""
    counted = dict(point.split(":") for point in points)
    counted["journal.before_commit"] = counted["journal.after_commit"] = "4"
    return [f"{name}:{number}" for name, number in counted.items()]
