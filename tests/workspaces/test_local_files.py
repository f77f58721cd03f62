from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hermes.codec.atomic_files import replace_file
from hermes.core.errors import ToolError
from hermes.core.ports import FileInfo, Workspace
from hermes.workspaces import files
from hermes.workspaces.files import find_program

if TYPE_CHECKING:
    from tests.workspaces.places import Place


async def test_the_port_is_fulfilled(place: Place) -> None:
    workspace: Workspace = place.workspace
    assert workspace.root == workspace.cwd == str(place.root)


def real(path: str) -> str:
    return os.path.realpath(Path(path).expanduser())


async def test_paths_resolve_against_shell_home_and_links(place: Place) -> None:
    (place.root / "real").mkdir()
    (place.root / "link").symlink_to("real")
    (place.root / "dangling").symlink_to("real/later")
    resolve = place.workspace.resolve
    root = str(place.root)
    assert resolve("link/new/file") == f"{root}/real/new/file"
    assert resolve("dangling") == f"{root}/real/later"
    assert resolve("../project/./x") == f"{root}/x"
    assert resolve("/usr/../etc") == real("/etc")
    assert resolve("~") == str(place.home)
    assert resolve("~/notes") == f"{place.home}/notes"
    assert resolve("~root/x") == real("~root/x")
    assert resolve("~nobody-has-this-name") == f"{root}/~nobody-has-this-name"
    await place.run("cd real")
    assert resolve("x") == f"{root}/real/x"
    with pytest.raises(ToolError, match="NUL"):
        resolve("a\0b")


async def test_bytes_come_back_as_written(place: Place) -> None:
    file = place.root / "a" / "b" / "file.bin"
    path = str(file)
    await place.workspace.write_bytes(path, b"\0\xff\n")
    assert await place.workspace.read_bytes(path) == b"\0\xff\n"
    found = await place.workspace.stat(path)
    modified = file.stat().st_mtime_ns
    assert found == FileInfo(path=path, kind="file", size=3, modified_ns=modified)
    assert [entry.name for entry in file.parent.iterdir()] == ["file.bin"]


async def test_an_existing_file_keeps_its_mode_and_its_links(place: Place) -> None:
    target, link = place.root / "run.sh", place.root / "link"
    target.write_text("old")
    target.chmod(0o750)
    link.symlink_to(target)
    await place.workspace.write_bytes(str(link), b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="disk is full"):
        files.write_file(str(path), b"new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_names_of_any_length_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    replace_file(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing", "does not exist"),
        ("folder", "is a folder"),
        ("file/below", "is a file, not a folder"),
        ("pipe", "device, pipe or socket"),
        ("/dev/zero", "is a device"),
        ("/dev/stdin", "is a device"),
        ("/proc/self/fd/0", "is a device"),
        ("loop", "form a loop"),
    ],
)
async def test_what_cannot_be_read_is_told(place: Place, path: str, words: str) -> None:
    (place.root / "folder").mkdir()
    (place.root / "file").touch()
    (place.root / "loop").symlink_to("loop")
    os.mkfifo(place.root / "pipe")
    with pytest.raises(ToolError, match=words):
        await place.workspace.read_bytes(str(place.root / path))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "is a folder"),
        ("file/below", "is a file, not a folder"),
        ("pipe", "device, pipe or socket"),
        ("/dev/new", "is a device"),
        ("n" * 300, "too long"),
    ],
)
async def test_what_cannot_be_written_is_told(place: Place, path: str, words: str) -> None:
    (place.root / "folder").mkdir()
    (place.root / "file").touch()
    os.mkfifo(place.root / "pipe")
    with pytest.raises(ToolError, match=words):
        await place.workspace.write_bytes(str(place.root / path), b"x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_lack_of_permission_is_told(place: Place) -> None:
    closed = place.root / "closed"
    closed.touch(mode=0)
    with pytest.raises(ToolError, match="No permission"):
        await place.workspace.read_bytes(str(closed))


def test_a_file_too_large_is_told(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * 11)
    assert len(files.read_file(str(path), max_bytes=11)) == 11
    with pytest.raises(ToolError, match="too large"):
        files.read_file(str(path), max_bytes=10)


async def test_a_folder_is_listed_by_name(place: Place) -> None:
    (place.root / "b").mkdir()
    (place.root / "a").write_text("xy")
    (place.root / "c").symlink_to("nowhere")
    (place.root / "d").symlink_to("b")
    listed = await place.workspace.list_folder(str(place.root))
    assert [(Path(info.path).name, info.kind) for info in listed] == [
        ("a", "file"),
        ("b", "folder"),
        ("c", "other"),
        ("d", "folder"),
    ]
    with pytest.raises(ToolError, match="does not exist"):
        await place.workspace.list_folder(str(place.root / "no"))


async def test_nothing_there_is_none(place: Place) -> None:
    assert await place.workspace.stat(str(place.root / "no")) is None
    (place.root / "file").touch()
    assert await place.workspace.stat(str(place.root / "file" / "below")) is None


async def test_files_and_empty_folders_can_be_deleted(place: Place) -> None:
    folder = place.root / "folder"
    folder.mkdir()
    (folder / "x").touch()
    with pytest.raises(ToolError, match="not empty"):
        await place.workspace.delete(str(folder))
    await place.workspace.delete(str(folder / "x"))
    await place.workspace.delete(str(folder))
    assert not folder.exists()
    with pytest.raises(ToolError, match="does not exist"):
        await place.workspace.delete(str(folder))


async def test_scratch_is_outside_the_project(place: Place) -> None:
    path = await place.workspace.scratch("../call/1.txt", b"long output")
    assert await place.workspace.read_bytes(path) == b"long output"
    assert Path(path).parent == place.state / "scratch"


def test_programs_are_found_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    (tmp_path / "tool").touch(mode=0o755)
    path = f"/nowhere:{tmp_path}"
    assert find_program("tool", path) == str(tmp_path / "tool")
    assert find_program("plain", path) is None
