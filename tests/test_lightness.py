"""What a plain answer does not load, send or need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says

HERMES = str(Path(sys.executable).with_name("hermes"))
# What the library for values loads by itself where it is installed.
ALONG = {"typing_extensions"}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "HERMES_HOME": str(tmp_path / "home")}


def loaded(command: list[str], env: dict[str, str]) -> set[str]:
    """The packages that a run of the program loads, and a bare interpreter does not."""
    return _packages([HERMES, *command], env) - _packages(["-c", "pass"], env)


def _packages(arguments: list[str], env: dict[str, str]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    rows = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line]
    return {name.partition(".")[0] for name in rows}


def test_one_answer_loads_no_library_but_the_one_for_values(env: dict[str, str]) -> None:
    with ScriptedServer.in_thread([says("hello")]) as server:
        env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        packages = loaded(["-m", "test", "-z", "hi"], env)
    outside = {name for name in packages if name not in sys.stdlib_module_names}
    assert outside - ALONG == {"hermes", "msgspec"}
    assert len(server.requests) == 1
    assert server.probes == []


def test_the_version_loads_next_to_nothing(env: dict[str, str]) -> None:
    assert loaded(["--version"], env) <= {"hermes", "__future__", "gc"}


def test_the_first_request_is_small(env: dict[str, str]) -> None:
    with ScriptedServer.in_thread([says("hello")]) as server:
        env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        subprocess.run([HERMES, "-m", "test", "-z", "hi"], env=env, check=True, cwd=env["HOME"])
        assert len(server.requests[0].raw) <= 12_000
