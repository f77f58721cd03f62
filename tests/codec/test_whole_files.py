"""Files that are replaced whole: their mode, their links, and what stays when that fails."""

import stat
from pathlib import Path

import pytest

from hermes.codec.atomic_files import PRIVATE, replace_file, write_new


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_private_and_its_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    replace_file(path, b"one")
    assert (path.read_bytes(), mode_of(path), mode_of(path.parent)) == (b"one", PRIVATE, 0o700)


def test_a_file_keeps_its_mode_unless_another_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o755)
    replace_file(path, b"new", durable=False)
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o755)
    replace_file(path, b"newer", mode=PRIVATE)
    assert (path.read_bytes(), mode_of(path)) == (b"newer", PRIVATE)


def test_a_link_goes_on_pointing_where_it_points(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(folder, b"new")
    assert list(tmp_path.iterdir()) == [folder]


def test_folders_that_are_gone_stay_gone_if_that_is_wished(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "gone" / "file", b"x", folders=False)
    assert not (tmp_path / "gone").exists()


def test_a_new_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    write_new(tmp_path / "file", b"one")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", b"two")
    assert (tmp_path / "file").read_bytes() == b"one"
