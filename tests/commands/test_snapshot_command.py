"""`/snapshot` makes, lists and removes snapshots, and tells the way back to one."""

from __future__ import annotations

from zipfile import ZipFile

from hermes.commands.registry import ShowText
from tests.commands.conftest import Talk


async def shown(talk: Talk, line: str) -> str:
    outcome = await talk.registry.run(line, talk)
    assert isinstance(outcome, ShowText), outcome
    return outcome.text


async def test_a_snapshot_holds_what_was_said_and_is_listed(talk: Talk) -> None:
    assert "There are no snapshots" in await shown(talk, "/snapshot")
    await talk.say("help")
    told = await shown(talk, "/snapshot create before trying")
    (file,) = (talk.app.context.home.root / "backups").glob("*.zip")
    assert str(file) in told
    assert file.name.endswith("-before-trying.zip")
    assert "hermes.db" in ZipFile(file).namelist()
    assert file.stem in await shown(talk, "/snapshot")


async def test_the_way_back_is_told_and_nothing_is_put_back_under_an_open_session(
    talk: Talk,
) -> None:
    await talk.say("help")
    await shown(talk, "/snapshot create")
    told = await shown(talk, "/snapshot restore 1")
    file = told.partition("hermes import ")[2].partition("\n")[0]
    assert file in {str(each) for each in (talk.app.context.home.root / "backups").glob("*.zip")}
    assert "There is no snapshot '9'" in await shown(talk, "/snapshot restore 9")


async def test_only_the_newest_snapshots_stay_when_the_others_are_pruned(talk: Talk) -> None:
    await talk.say("help")
    for label in ("one", "two", "three"):
        await shown(talk, f"/snapshot create {label}")
    assert await shown(talk, "/snapshot prune 1") == "2 snapshots removed."
    (left,) = (talk.app.context.home.root / "backups").glob("*.zip")
    assert left.stem.endswith("three")
    assert "Use /snapshot" in await shown(talk, "/snapshot prune all")
    assert "Use /snapshot" in await shown(talk, "/snapshot dance")
