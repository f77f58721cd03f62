"""Finding a home, its profiles, and making its folders."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.config.home import Home, resolve_home
from hermes.core.errors import ConfigError, NotFound, UsageError


def test_an_explicit_home_wins_over_the_environment(tmp_path: Path) -> None:
    home = resolve_home({"HERMES_HOME": "/elsewhere"}, explicit=tmp_path)
    assert home.root == tmp_path


def test_the_variable_wins_over_the_default(tmp_path: Path) -> None:
    env = {"HERMES_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    assert resolve_home(env).root == tmp_path / "own"


def test_without_a_variable_the_home_is_in_the_users_folder(tmp_path: Path) -> None:
    assert resolve_home({"HOME": str(tmp_path)}).root == tmp_path / ".hermes"


def test_a_tilde_in_the_variable_is_the_users_folder() -> None:
    assert resolve_home({"HERMES_HOME": "~/other"}).root == Path.home() / "other"


def test_a_profile_is_a_home_inside_the_home(tmp_path: Path) -> None:
    (tmp_path / "profiles" / "work").mkdir(parents=True)
    env = {"HERMES_HOME": str(tmp_path)}
    home = resolve_home(env, profile="work")
    assert (home.root, home.profile) == (tmp_path / "profiles" / "work", "work")
    assert resolve_home({**env, "HERMES_PROFILE": "work"}).root == home.root


def test_a_profile_is_looked_for_beside_the_profile_that_the_variable_names(tmp_path: Path) -> None:
    for name in ("work", "play"):
        (tmp_path / "profiles" / name).mkdir(parents=True)
    env = {"HERMES_HOME": str(tmp_path / "profiles" / "work")}
    assert resolve_home(env).profile == "work"
    assert resolve_home(env, profile="play").root == tmp_path / "profiles" / "play"
    assert resolve_home(env, profile="default").root == tmp_path


def test_the_sticky_profile_is_used_unless_another_is_named(tmp_path: Path) -> None:
    for name in ("work", "play"):
        (tmp_path / "profiles" / name).mkdir(parents=True)
    (tmp_path / "active_profile").write_text("work\n")
    env = {"HERMES_HOME": str(tmp_path)}
    assert resolve_home(env).profile == "work"
    assert resolve_home(env, profile="play").profile == "play"
    assert resolve_home(env, profile="default").root == tmp_path
    inside = {"HERMES_HOME": str(tmp_path / "profiles" / "play")}
    assert resolve_home(inside).profile == "play"


def test_a_profile_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "profiles" / "work").mkdir(parents=True)
    with pytest.raises(
        NotFound, match=r"There is no profile 'wrok'.*existing profiles: work"
    ) as caught:
        resolve_home({"HERMES_HOME": str(tmp_path)}, profile="wrok")
    assert caught.value.near == ("work",)
    assert [entry.name for entry in (tmp_path / "profiles").iterdir()] == ["work"]


@pytest.mark.parametrize("name", ["../x", "Work", "a b", "-a", "a" * 65])
def test_a_profile_name_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        resolve_home({"HERMES_HOME": str(tmp_path)}, profile=name)


def test_folders_are_made_private_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    before = os.umask(0)
    try:
        home.ensure_folder(home.logs)
    finally:
        os.umask(before)
    for path in (tmp_path / "deep", home.root, home.logs):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_made_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = Home(tmp_path / "file" / "home")
    with pytest.raises(ConfigError, match=r"Cannot write to .*HERMES_HOME"):
        home.ensure_folder(home.logs)


def test_a_test_cannot_open_the_real_home(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "from hermes.config.home import resolve_home\n"
        "print(resolve_home(dict(os.environ)).root)"
    )
    env = {**os.environ, "PYTEST_CURRENT_TEST": "x"}
    env = {name: env[name] for name in env if name not in ("HERMES_HOME", "HOME")}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )
    assert "must not open the real home" in run.stderr
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**env, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.strip() == str(tmp_path / ".hermes")
