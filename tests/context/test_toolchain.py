"""What is unusual about a machine is told in a sentence; what is usual costs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.context.prompting import MANAGED, NO_PIP, NO_PYTHON, ONLY_PYTHON3, TERMUX, WSL
from hermes.context.prompting import toolchain_notes as told


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    return tmp_path


def program(machine: Path, *names: str) -> None:
    for name in names:
        path = machine / "usr" / "bin" / name
        path.touch()
        path.chmod(0o755)


def seen(machine: Path, **env: str) -> str:
    return told({"PATH": f"{machine}/usr/bin:/nowhere", **env}, machine / "osrelease")


def test_a_usual_machine_needs_no_words(machine: Path) -> None:
    program(machine, "python", "python3", "pip")
    assert seen(machine) == ""


def test_what_python_lacks_is_told(machine: Path) -> None:
    assert seen(machine) == NO_PYTHON
    program(machine, "python3")
    assert seen(machine) == f"{ONLY_PYTHON3} pip is missing."
    program(machine, "uv", "python")
    assert seen(machine) == NO_PIP.format("uv")


def test_a_system_that_keeps_its_packages_is_told_unless_one_is_in_an_environment(
    machine: Path,
) -> None:
    program(machine, "python3.11", "pip3", "python")
    (machine / "usr" / "bin" / "python3").symlink_to("python3.11")
    mark = machine / "usr" / "lib" / "python3.11" / "EXTERNALLY-MANAGED"
    mark.parent.mkdir(parents=True)
    mark.touch()
    assert seen(machine) == MANAGED
    (machine / "usr" / "pyvenv.cfg").touch()
    assert seen(machine) == ""


def test_other_systems_beneath_are_told(machine: Path) -> None:
    program(machine, "python", "python3", "pip")
    (machine / "osrelease").write_text("5.15.90.1-microsoft-standard-WSL2")
    assert seen(machine) == WSL
    assert seen(machine, TERMUX_VERSION="0.118") == TERMUX
