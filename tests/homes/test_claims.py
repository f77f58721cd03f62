"""One home at a time listens with a token, on the whole machine."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.core.errors import ConfigError
from hermes.homes.token_claims import claims_folder, hold_claim

TOKEN = "a token that two homes have"
HOLD = """
import sys
from pathlib import Path
from hermes.homes.token_claims import hold_claim
from hermes.config.home import Home

home, folder, token = sys.argv[1:]
env = {"HERMES_GATEWAY_LOCK_DIR": folder}
with hold_claim("api", token, remedy="", home=Home(Path(home)), env=env):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HERMES_GATEWAY_LOCK_DIR": str(tmp_path / "claims")}


def claim(home: Path, env: dict[str, str], token: str = TOKEN) -> ExitStack:
    held = ExitStack()
    remedy = "give this one its own"
    held.enter_context(hold_claim("api", token, remedy=remedy, home=Home(home), env=env))
    return held


def test_another_home_is_refused_with_whom_and_what_to_do(
    tmp_path: Path, env: dict[str, str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with claim(first, env):
        with pytest.raises(ConfigError, match=rf"{first} \(process \d+\) .* its own\.$"):
            claim(second, env)
        with claim(second, env, "another token"):
            pass
    with claim(second, env):
        pass


def test_the_same_home_may_listen_twice(tmp_path: Path, env: dict[str, str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with claim(first, env):
        with claim(first, env):
            pass
        with pytest.raises(ConfigError):
            claim(second, env)


def test_a_killed_process_holds_nothing(tmp_path: Path, env: dict[str, str]) -> None:
    folder = env["HERMES_GATEWAY_LOCK_DIR"]
    arguments = [sys.executable, "-c", HOLD, str(tmp_path / "first"), folder, TOKEN]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=str(process.pid)):
            claim(tmp_path / "second", env)
        process.kill()
        process.wait()
        with claim(tmp_path / "second", env):
            pass


def test_the_token_is_nowhere_in_the_notes(tmp_path: Path, env: dict[str, str]) -> None:
    with claim(tmp_path / "first", env):
        (note,) = claims_folder(env).iterdir()
        assert TOKEN not in note.name + note.read_text()
        assert note.stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with claim(tmp_path / "first", {"HERMES_GATEWAY_LOCK_DIR": str(tmp_path / "file" / "below")}):
        pass


def test_the_state_of_the_person_is_the_place_for_them() -> None:
    assert claims_folder({"HOME": "/h"}) == Path("/h/.local/state/hermes/listeners")
    assert claims_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/hermes/listeners")
