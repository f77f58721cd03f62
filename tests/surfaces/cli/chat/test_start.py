"""The prompt is there before everything else is."""

from __future__ import annotations

import subprocess
import sys

# What a session needs and the prompt does not.
LATER = ("hermes.app", "hermes.journal", "hermes.providers", "rich", "httpx2", "ruamel", "sqlite3")


def test_the_prompt_does_not_wait_for_what_a_session_needs() -> None:
    code = "import sys, hermes.surfaces.cli.chat.startup; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith(LATER)] == []
    assert "prompt_toolkit" in loaded
