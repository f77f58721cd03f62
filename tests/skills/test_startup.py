"""What a start with many skills reads and loads: nothing that it knows already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hermes.config.extension_settings import SkillSettings
from hermes.skills.skill import MAIN
from tests.skills.bench import skill_text

SCRIPT = """
import sys
opened = []
sys.addaudithook(lambda name, args: opened.append(str(args[0])) if name == "open" else None)
from pathlib import Path
from hermes.skills.session_index import skill_index
from hermes.config.home import Home
from hermes.config.settings import Settings
tools = ("skill_view", "terminal", "patch")
text = skill_index(Settings(), Home(Path(sys.argv[1])), platform="cli", cwd="/", tools=tools)
read = [path for path in opened if path.endswith("SKILL.md")]
heavy = [name for name in ("ruamel", "tarfile", "ctypes") if name in sys.modules]
print(len(text), len(read), *heavy)
"""


def start(home: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(home)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout.split()


def test_a_second_start_reads_no_skill_and_loads_no_library(tmp_path: Path) -> None:
    for n in range(200):
        folder = tmp_path / f"skills/c{n % 9}/skill-{n:03}"
        folder.mkdir(parents=True)
        (folder / MAIN).write_text(skill_text(folder.name, f"Matter {n} of some length"))
    size, read, *_ = start(tmp_path)
    assert (int(size) <= SkillSettings().index_max_chars, int(read) >= 200) == (True, True)
    again, nothing, *heavy = start(tmp_path)
    assert (again, nothing) == (size, "0")
    assert heavy == []


def test_the_first_start_in_a_home_does_not_load_the_yaml_library(tmp_path: Path) -> None:
    size, read, *heavy = start(tmp_path)
    assert (int(size) > 0, int(read) > 20, "ruamel" in heavy) == (True, True, False)
