"""A home in one file: everything comes back, and nothing is lost on the way."""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from hermes.journal.leases import LeaseOwner, lock_folder
from tests.surfaces.cli.program import Program


@pytest.fixture
def lived_in(program: Program) -> Program:
    program.write("# my settings\nagent: {max_turns: 7}\n")
    program("config", "set", "OPENROUTER_API_KEY", "sk-or-v1-0123456789abcdef")
    (program.home / "SOUL.md").write_text("Be kind.")
    program.ask("calculate 6*7")
    program.ask("write a file named a.txt with 'hi'")
    return program


def test_a_home_comes_back_as_it_was(lived_in: Program) -> None:
    before = lived_in("sessions", "export", "--no-redact").out
    made = lived_in("backup", "-o", "all.zip", "--json").json
    assert stat.S_IMODE(Path("all.zip").stat().st_mode) == 0o600
    assert made["bytes"] == Path("all.zip").stat().st_size
    kept = {
        name: (lived_in.home / name).read_bytes() for name in ("config.yaml", ".env", "SOUL.md")
    }
    shutil.rmtree(lived_in.home)
    assert lived_in("import", "all.zip", "--yes").code == 0
    assert {name: (lived_in.home / name).read_bytes() for name in kept} == kept
    assert stat.S_IMODE((lived_in.home / ".env").stat().st_mode) == 0o600
    assert lived_in("sessions", "export", "--no-redact").out == before
    assert lived_in("sessions", "verify").code == 0
    assert lived_in("sessions", "search", "calculate", "--json").json
    assert lived_in.ask("calculate 2*3").out == "2*3 = 6\n"


def test_a_backup_leaves_out_what_is_made_again(lived_in: Program) -> None:
    lived_in("backup", "-o", "all.zip")
    lived_in("backup")
    lived_in("backup", "-o", "again.zip")
    with zipfile.ZipFile("again.zip") as archive:
        names = archive.namelist()
    assert not [name for name in names if name.startswith(("cache/", "checkpoints/", "backups/"))]
    assert not [name for name in names if name.endswith((".lock", "-wal", "-shm"))]
    assert "hermes.db" in names


def test_restoring_over_a_home_keeps_what_it_held(lived_in: Program) -> None:
    lived_in("backup", "-o", "old.zip")
    lived_in("config", "set", "agent.max_turns", "9")
    lived_in.ask("calculate 1+1")
    result = lived_in("import", "old.zip", "--yes", "--json").json
    assert lived_in("config", "get", "agent.max_turns").out == "7\n"
    assert len(lived_in.sessions()) == 2
    assert result["added"] == 0
    assert lived_in("import", result["before"], "--yes").code == 0
    assert lived_in("config", "get", "agent.max_turns").out == "9\n"
    assert len(lived_in.sessions()) == 3


def test_restoring_asks_and_says_what_it_would_do(lived_in: Program) -> None:
    lived_in("backup", "-o", "old.zip")
    lived_in("config", "set", "agent.max_turns", "9")
    asked = lived_in("import", "old.zip")
    assert (asked.code, asked.out) == (2, "")
    assert "replace files in" in asked.err
    looked = lived_in("import", "old.zip", "--dry-run", "--json").json
    assert looked["replaces"] == looked["files"]
    assert lived_in("config", "get", "agent.max_turns").out == "9\n"


def test_a_home_in_use_is_not_written_over(lived_in: Program) -> None:
    lived_in("backup", "-o", "old.zip")
    owner = LeaseOwner(lock_folder(lived_in.home))
    owner.hold_lock()
    try:
        result = lived_in("import", "old.zip", "--yes")
    finally:
        owner.release()
    assert result.code == 1
    assert "is in use by process" in result.err


@pytest.mark.parametrize("content", [b"", b"PK nonsense", b"plain text"])
def test_what_is_no_backup_is_refused(program: Program, content: bytes) -> None:
    Path("x.zip").write_bytes(content)
    result = program("import", "x.zip", "--yes")
    assert result.code == 2
    assert not program.home.exists()
    with zipfile.ZipFile("y.zip", "w") as archive:
        archive.writestr("holiday.jpg", b"...")
    assert "is not a backup of a home" in program("import", "y.zip", "--yes").err
    assert program("import", "nosuch.zip", "--yes").code == 1


def test_quick_backups_hold_what_matters_and_old_ones_go(lived_in: Program) -> None:
    made = lived_in("backup", "--quick", "--label", "before it", "--json").json
    with zipfile.ZipFile(made["file"]) as archive:
        assert {*archive.namelist()} == {".env", "SOUL.md", "config.yaml", "hermes.db"}
    assert made["file"].endswith("-before-it.zip")
    for day in range(10, 35):
        name = f"quick-202601{day}-000000-before-it.zip"
        (lived_in.home / "backups" / name).write_bytes(b"")
    lived_in("backup", "--quick", "--label", "before it")
    left = sorted((lived_in.home / "backups").glob("quick-????????-??????-before-it.zip"))
    assert len(left) == 20
    assert made["file"] in map(str, left)


def test_a_backup_does_not_replace_a_file(lived_in: Program) -> None:
    Path("mine.zip").write_text("mine")
    assert lived_in("backup", "-o", "mine.zip").code == 2
    assert Path("mine.zip").read_text() == "mine"
    assert lived_in("backup", "-o", "nosuch/folder/x.zip").code == 0


def test_a_home_that_is_not_there_cannot_be_backed_up(program: Program) -> None:
    assert program("backup").code == 1
    assert program("backup", "--quick").code == 1
    assert not program.home.exists()


def test_the_settings_of_honcho_beside_the_home_come_along(
    lived_in: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = lived_in.work.parent
    monkeypatch.setenv("HOME", str(person))
    file = person / ".honcho" / "config.json"
    file.parent.mkdir()
    file.write_text('{"workspace": "w", "apiKey": "k"}')
    lived_in("config", "set", "memory.provider", "honcho")
    made = lived_in("backup", "-o", "all.zip", "--json").json
    assert made["outside"] == {"files": [".honcho/config.json"], "left_out": []}
    file.unlink()
    assert lived_in("import", "all.zip", "--yes", "--external", "--json").json["outside"]
    assert "apiKey" in file.read_text()


def test_a_home_with_broken_settings_is_backed_up_all_the_same(lived_in: Program) -> None:
    lived_in.write("memory: {provider: [}\n")
    assert lived_in("backup", "-o", "all.zip").code == 0
