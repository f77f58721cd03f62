"""Every example of docs/testing.md runs as it stands, and what the page lists exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from hermes.testing.server import read_script
from hermes.testing.steps import Failure, Flaw, Pace, ScriptedCall, Step

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_examples_pass(tmp_path: Path) -> None:
    for number, block in enumerate(blocks("python")):
        (tmp_path / f"test_example_{number}.py").write_text(block, encoding="utf-8")
    plugin = ["-p", "anyio", "-p", "hermes.testing.fixtures", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugin, "--rootdir", ".", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(blocks('python'))} passed" in done.stdout


def test_the_script_of_the_page_can_be_served(tmp_path: Path) -> None:
    (block,) = blocks("json")
    path = tmp_path / "script.json"
    path.write_text(block, encoding="utf-8")
    assert read_script(path).steps == (
        "I will have a look.",
        Step(calls=(ScriptedCall(name="read_file", arguments={"path": "a.txt"}),)),
        Step(failure=Failure(status=429, retry_after=1)),
        Step(text="All done.", pace=Pace(chunk=4, between_seconds=0.05), flaws=("crlf",)),
    )


def test_every_flaw_is_explained_where_it_is_defined() -> None:
    source = (ROOT / "src/hermes/testing/steps.py").read_text(encoding="utf-8")
    explained = re.findall(r"^([a-z_]+) {2,}\S", source, flags=re.MULTILINE)
    assert explained == list(get_args(Flaw))
