"""Declared files on a far machine, there and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.workspaces.remote.sync import FileSync, SyncedPath, SyncResult
from hermes.workspaces.remote.workspace import RemoteWorkspace
from tests.workspaces.places import AnyPlace, ssh_place
from tests.workspaces.sshd import Sshd


@pytest.fixture
async def there(tmp_path: Path, sshd: Sshd) -> AsyncIterator[AnyPlace]:
    place = ssh_place(tmp_path, sshd)
    yield place
    await place.close()


def sync_of(place: AnyPlace) -> FileSync:
    assert isinstance(place.workspace, RemoteWorkspace)
    return place.workspace.sync()


async def test_only_what_differs_is_sent(there: AnyPlace, tmp_path: Path) -> None:
    near, far = tmp_path / "skills", f"{there.root}/skills"
    (near / "a").mkdir(parents=True)
    (near / "a" / "one.md").write_text("one")
    (near / "two.md").write_text("two")
    sync, declared = sync_of(there), SyncedPath(near=str(near), far=far)
    moved = await sync.send(declared)
    assert sorted(moved.sent) == [str(near / "a" / "one.md"), str(near / "two.md")]
    assert await there.output("cat skills/a/one.md; stat -c %a skills/two.md") == "one400\n"
    assert await sync.send(declared) == SyncResult()
    (near / "two.md").write_text("changed")
    assert await sync.send(declared) == SyncResult(sent=(str(near / "two.md"),))
    await there.run("chmod 600 skills/two.md; echo evil > skills/two.md")
    assert await sync.fetch(declared) == SyncResult()
    assert (near / "two.md").read_text() == "changed"


async def test_results_come_back_and_conflicts_lose_nothing(
    there: AnyPlace, tmp_path: Path
) -> None:
    near, far = tmp_path / "work", f"{there.root}/work"
    near.mkdir()
    (near / "both").write_text("start")
    (near / "theirs").write_text("start")
    sync, declared = sync_of(there), SyncedPath(near=str(near), far=far, back=True)
    await sync.send(declared)
    await there.run("cd work; echo far > both; echo far > theirs; mkdir sub; echo new > sub/made")
    (near / "both").write_text("near")
    moved = await sync.fetch(declared)
    assert sorted(moved.fetched) == [str(near / "sub" / "made"), str(near / "theirs")]
    assert moved.conflicts == (str(near / "both.far"),)
    contents = {path.name: path.read_text() for path in near.rglob("*") if path.is_file()}
    assert contents == {"both": "near", "both.far": "far\n", "theirs": "far\n", "made": "new\n"}
    assert await sync.fetch(declared) == moved.__class__(conflicts=moved.conflicts)


async def test_a_single_file_and_odd_names(there: AnyPlace, tmp_path: Path) -> None:
    near = tmp_path / "a file's name"
    near.write_bytes(bytes(range(256)))
    declared = SyncedPath(near=str(near), far=f"{there.root}/copy of it", back=True)
    sync = sync_of(there)
    assert await sync.send(declared) == SyncResult(sent=(str(near),))
    assert await there.workspace.read_bytes(f"{there.root}/copy of it") == bytes(range(256))
    await there.run("echo back > 'copy of it'")
    assert await sync.fetch(declared) == SyncResult(fetched=(str(near),))
    assert near.read_text() == "back\n"
