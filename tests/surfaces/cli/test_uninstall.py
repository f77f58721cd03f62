"""Leaving: what goes is said first, and a wrong folder never goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.homes.installation import installation
from tests.surfaces.cli.program import Program

pytestmark = pytest.mark.skipif(
    installation().is_package, reason="removing the package would end the tests"
)


def test_without_more_the_home_stays(program: Program) -> None:
    program.write("agent: {max_turns: 7}\n")
    result = program("uninstall", "--yes")
    assert result.code == 0
    assert f"{program.home} stays." in result.out
    assert (program.home / "config.yaml").exists()


def test_looking_first_removes_nothing(program: Program) -> None:
    program.write("agent: {max_turns: 7}\n")
    assert "with everything in it" in program("uninstall", "--full", "--dry-run").out
    asked = program("uninstall", "--full")
    assert asked.code == 2
    assert "confirm with --yes" in asked.err
    assert (program.home / "config.yaml").exists()


def test_the_whole_home_goes_when_that_is_said(program: Program) -> None:
    program.write("agent: {max_turns: 7}\n")
    program("profile", "create", "work")
    program("profile", "use", "work")
    assert program("uninstall", "--full", "--yes").code == 0
    assert not program.home.exists()


def test_a_folder_that_is_no_home_stays(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = program.work / "photos"
    photos.mkdir()
    (photos / "a.jpg").write_text("…")
    monkeypatch.setenv("HERMES_HOME", str(photos))
    result = program("uninstall", "--full", "--yes")
    assert result.code == 1
    assert "does not look like a Hermes home" in result.err
    assert (photos / "a.jpg").exists()


def test_the_persons_own_folder_stays(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    person = Path.home()
    (person / "SOUL.md").write_text("…")
    monkeypatch.setenv("HERMES_HOME", str(person))
    assert program("uninstall", "--full", "--yes").code == 1
    assert person.exists()
