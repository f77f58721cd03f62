"""A terminal backend that does not exist: nothing runs on this machine instead."""

from __future__ import annotations

import pytest

from tests.surfaces.cli.program import OFFLINE, Program

KNOWN = "must be one of local, ssh, docker, podman, singularity, modal, daytona"


@pytest.mark.parametrize(
    ("config", "variable", "told"),
    [
        ("terminal: {backend: dokcer}\n", "", f"terminal.backend {KNOWN}, not 'dokcer'"),
        ("terminal: docker\n", "", "terminal must be a mapping, not 'docker'"),
        ("terminal: {backnd: docker}\n", "", "did you mean terminal.backend?"),
        ("", "dokcer", f"TERMINAL_ENV in the environment: terminal.backend {KNOWN}"),
        ("terminal: {backend: local}\n", "dokcer", "unset TERMINAL_ENV."),
    ],
)
def test_an_unknown_backend_is_refused_and_nothing_runs_here(
    program: Program, monkeypatch: pytest.MonkeyPatch, config: str, variable: str, told: str
) -> None:
    program.write(config)
    if variable:
        monkeypatch.setenv("TERMINAL_ENV", variable)
    result = program(*OFFLINE, "-z", "run touch ran.txt")
    assert (result.code, result.out) == (2, "")
    assert told in result.err
    assert not (program.work / "ran.txt").exists()
    assert program("doctor").code == 1
    assert program("config", "check").code == 1


def test_a_session_is_not_resumed_with_an_unknown_backend(program: Program) -> None:
    session = program.session("calculate 6*7")
    program.write("terminal: {backend: dokcer}\n")
    result = program(*OFFLINE, "-r", session, "-z", "run touch ran.txt")
    assert (result.code, result.out) == (2, "")
    assert not (program.work / "ran.txt").exists()
    program("config", "unset", "terminal.backend")
    assert program(*OFFLINE, "-r", session, "-z", "run touch ran.txt").code == 0
    assert (program.work / "ran.txt").exists()
