"""Whatever a command destroys comes back exactly, and what the person did meanwhile stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.undo import project
from tests.undo.conftest import Agent, Picture
from tests.undo.scripts import SCRIPTS

QUICK = ("remove a tree", "git reset", "git clean ignored", "rename in a circle", "sparse file")
assert len(SCRIPTS) >= 60


def without(picture: Picture, names: list[str]) -> Picture:
    """Without the person's own files, and without those that an editor saves by."""
    own = {*names, *(f"{name}.swp" for name in names)}
    return {name: seen for name, seen in picture.items() if name not in own}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in SCRIPTS],
)
async def test_what_a_script_destroys_comes_back(agent: Agent, tmp_path: Path, name: str) -> None:
    project.make(agent.root, tmp_path / "outside")
    own = project.user_files()
    before = without(agent.picture(), own)
    outside = (tmp_path / "outside" / "precious.txt").read_text()
    with project.Person(agent.root, own, tmp_path) as person:
        result = await agent.run(SCRIPTS[name])
        said = person.said()
    assert result.exit_code == 0, result.output
    assert without(agent.picture(), own) != before, "the script has changed nothing"
    done = agent.undo()
    assert without(agent.picture(), own) == before
    assert done.lost == ()
    assert {n: (agent.root / n).read_text() for n in said} == said
    assert (tmp_path / "outside" / "precious.txt").read_text() == outside
