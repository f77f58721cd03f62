"""Whatever a command destroys comes back exactly, and what the person did meanwhile stays."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.undo.attribution import compare
from hermes.undo.entry import present_token, read_entry
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


RENAMER = """
import os, sys, time
draft, target, started, renamed = sys.argv[1:]
while not os.path.exists(started):
    time.sleep(0.005)
os.replace(draft, target)
open(renamed, "w").close()
"""


async def test_a_draft_that_an_editor_renames_during_a_command_stays(
    agent: Agent, tmp_path: Path
) -> None:
    """The editor wrote the draft before the command, so only the rename can be observed."""
    project.make(agent.root, tmp_path / "outside")
    draft, target = agent.root / "mine3.txt.swp", agent.root / "mine3.txt"
    draft.write_text("as the person left it\n")
    started, renamed = tmp_path / "started", tmp_path / "renamed"
    arguments = map(str, (draft, target, started, renamed))
    editor = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", RENAMER, *arguments)
    await agent.did(
        f"touch {started}; until test -e {renamed}; do sleep 0.01; done; git reset -q --hard"
    )
    assert await asyncio.wait_for(editor.wait(), timeout=60) == 0
    agent.undo()
    assert (agent.root / "README.md").read_text() == "# Project\nnot committed\n"
    assert target.read_text() == "as the person left it\n"


def test_an_edit_after_the_scan_is_no_change_of_the_command(tmp_path: Path) -> None:
    """Fresh files are read again to compare contents; by then someone may have edited them."""
    path = tmp_path / "notes.txt"
    path.write_text("before\n")
    found = read_entry(str(path), path.stat().st_ctime_ns)
    assert found is not None and found.fresh
    before = replace(found, token=present_token(str(path)))
    scanned = replace(before, token=b"")
    assert compare({str(path): before}, {str(path): scanned}) == []
    path.write_text("by the person, after the scan\n")
    assert compare({str(path): before}, {str(path): scanned}) == []
    (created,) = compare({}, {str(path): scanned})
    assert created.after is not None and created.after.token == b""
