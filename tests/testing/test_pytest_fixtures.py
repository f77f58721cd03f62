"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
# Plugins of others take longer to load than these tests to run.
PLUGIN = ("-p", "hermes.testing.fixtures", "-p", "no:cacheprovider")


def run_pytest(
    folder: Path, code: str, *options: str, home: str | None = None
) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(code)
    environment = {
        "PYTHONPATH": str(SOURCE),
        "HOME": home or str(folder),
        "OPENAI_API_KEY": "sk-real",
        "PATH": "/usr/bin:/bin",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *PLUGIN, "--rootdir", ".", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_home_is_empty_temporary_and_without_keys(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import os

def test_home(hermes_home, tmp_path):
    assert os.environ["HERMES_HOME"] == str(hermes_home)
    assert tmp_path in hermes_home.parents
    assert list(hermes_home.iterdir()) == []
    assert "OPENAI_API_KEY" not in os.environ

def test_afterwards():
    assert "HERMES_HOME" not in os.environ
    assert os.environ["OPENAI_API_KEY"] == "sk-real"
""",
    )
    assert "2 passed" in done.stdout, done.stdout


def test_the_real_home_is_refused(tmp_path: Path) -> None:
    real = tmp_path / ".hermes"
    real.mkdir()
    done = run_pytest(tmp_path, "def test_home(hermes_home): pass", f"--basetemp={real / 'temp'}")
    assert "is inside the real home" in done.stdout


def test_a_violation_fails_the_test_unless_it_was_wanted(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import urllib.error, urllib.request
import pytest

def offend(server):
    url = server.url + "/v1/chat/completions"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url, data=b"{}")
    caught.value.close()

def test_careless(model_server):
    offend(model_server)

def test_knowing(model_server):
    offend(model_server)
    model_server.violations.clear()
""",
    )
    assert "request 1: the body is an empty object" in done.stdout
    assert "2 passed, 1 error" in done.stdout


def test_time_chance_and_effects_belong_to_the_test(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        """
import pytest

ids = set()

@pytest.mark.parametrize("run", [1, 2])
def test_world(run, seeded, virtual_clock, effect_log):
    assert seeded.clock is virtual_clock
    ids.add(seeded.new_id("x"))
    assert len(ids) == 1
    assert virtual_clock.monotonic() == 0
    effect_log.add("done")
    assert effect_log.counts() == {"done": 1}
""",
    )
    assert "2 passed" in done.stdout, done.stdout


def test_the_plugin_loads_nothing_but_pytest() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import hermes.testing.fixtures;"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == [
        *("hermes", "hermes.testing", "hermes.testing.fixtures", "hermes.version"),
    ]
