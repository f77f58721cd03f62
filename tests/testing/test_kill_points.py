"""Sudden death where the test wants it, and effects counted across it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.errors import UsageError
from hermes.core.world import no_kill_point
from hermes.testing.kill import kill_points, walk
from hermes.testing.observers import EffectLog

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = """
import sys
from pathlib import Path
from hermes.core.world import World
from hermes.testing.observers import EffectLog
from hermes.testing.kill import kill_points

world = World(kill_point=kill_points(sys.argv[1]))
effects = EffectLog(Path(sys.argv[2]))
for _ in range(2):
    world.kill_point("intended")
    effects.add("sent")
    world.kill_point("finished")
world.kill_point("ended")
"""


def run(setting: str, effects: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, setting, str(effects)],
        env={"PYTHONPATH": str(SOURCE)},
        check=False,
        timeout=120,
    )
    return done.returncode


def test_every_point_of_a_run_can_be_walked(tmp_path: Path) -> None:
    names = tmp_path / "names"
    assert run(f"?{names}", tmp_path / "whole") == 0
    settings = walk(names)
    assert settings == ("intended:1", "finished:1", "intended:2", "finished:2", "ended:1")
    sent = []
    for number, setting in enumerate(settings):
        effects = EffectLog(tmp_path / f"effects-{number}")
        assert run(setting, effects.path) == -signal.SIGKILL
        sent.append(effects.count("sent"))
    assert sent == [0, 1, 1, 2, 2]


def test_a_name_alone_means_the_first_time(tmp_path: Path) -> None:
    effects = EffectLog(tmp_path / "effects")
    assert run("finished", effects.path) == -signal.SIGKILL
    assert effects.counts() == {"sent": 1}


def test_a_point_that_is_never_reached_kills_nobody(tmp_path: Path) -> None:
    assert run("finished:3", tmp_path / "effects") == 0


def test_without_a_setting_nothing_happens() -> None:
    assert kill_points("") is no_kill_point


@pytest.mark.parametrize("setting", [":2", "name:0", "name:x", "name:-1"])
def test_a_setting_that_means_nothing_is_refused(setting: str) -> None:
    with pytest.raises(UsageError, match="is not a kill point"):
        kill_points(setting)


def test_the_effect_of_a_shell_command_is_counted(tmp_path: Path) -> None:
    effects = EffectLog(tmp_path / "a folder" / "effects")
    assert effects.count("x") == 0
    effects.path.parent.mkdir()
    subprocess.run(["bash", "-c", effects.shell("it's sent")], check=True, timeout=120)
    effects.add("it's sent")
    assert effects.counts() == {"it's sent": 2}
