"""The page about settings says what the program does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hermes.config.schema import all_settings
from hermes.config.settings import OVERRIDES, Settings

ROOT = Path(__file__).parents[2]


def test_the_reference_is_current() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_reference.py"), "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


def test_every_key_and_every_variable_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "config.md").read_text()
    for setting in all_settings(Settings):
        assert f"| `{setting.path[-1]}` |" in page
        assert setting.meaning in page
    for override in OVERRIDES:
        assert f"`{override.variable}`" in page
