"""Plugins in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.workspaces.confinement import landlock
from tests.plugins.stage import Home, called, loaded


async def test_a_tool_of_a_plugin_answers_from_another_process(home: Home) -> None:
    home.tool("far", "import os\nreturn {'pid': os.getpid(), 'args': args, 'cwd': os.getcwd()}")
    plugins = home.open("far")
    states = await loaded(plugins)
    assert states["far"].status == "loaded", states["far"].fault
    answer = await called(plugins, "far", {"x": 1})
    assert answer["args"] == {"x": 1}
    assert answer["cwd"] == str(home.root / "plugin-data" / "far")
    await plugins.close()


HOST = """
import asyncio, sys
from pathlib import Path
import subprocess
import sys
import time
from pathlib import Path

from tests.plugins.stage import Home, called, loaded

async def main():
    home = Home(Path(sys.argv[1]))
    home.tool("stays", sys.argv[2])
    plugins = home.open("stays", means="landlock")
    await loaded(plugins)
    pid = await called(plugins, "stays")
    print(pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
STAYING = """
import ctypes, os, threading, time
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
def for_ever():
    os._exit = os.close = None
    while True:
        time.sleep(0.01)
threading.Thread(target=for_ever).start()
CTX.register_tool = None
import sys
sys.modules["hermes.plugins.inside.runtime"].Runtime.close = lambda self: time.sleep(600)
return os.getpid()
"""


@pytest.mark.skipif(bool(landlock.find_obstacle()), reason="there is no Landlock here")
def test_a_plugin_does_not_outlive_the_program(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path), STAYING],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert not _is_dead(pid)
        host.kill()
    for _ in range(2_000):
        if _is_dead(pid):
            return
        time.sleep(0.03)
    raise AssertionError("it is still there")


def _is_dead(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
