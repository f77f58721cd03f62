"""Processes of plugins are watched: what does not answer, or takes too much room, is ended."""

from __future__ import annotations

import asyncio

import pytest

from hermes.plugins.isolated import LivenessCheck
from hermes.plugins.protocol import PluginFault
from tests.durability.observing import eventually
from tests.plugins.stage import Home, called, loaded
from tests.timing import leap

# Whoever holds the lock of the interpreter while it sleeps answers nobody.
STUCK = """
import ctypes
open("begun", "w").close()
ctypes.PyDLL(None).sleep(600)
"""


async def test_a_plugin_that_gives_no_sign_of_life_is_ended_and_named(home: Home) -> None:
    home.tool("stuck", STUCK)
    plugins = home.open("stuck")
    plugins.pulse = LivenessCheck(every_seconds=20, patience_seconds=20)
    await loaded(plugins)
    call = asyncio.ensure_future(called(plugins, "stuck", seconds=0))
    begun = home.root / "plugin-data" / "stuck" / "begun"
    await eventually(begun.exists)
    while not call.done():
        leap(20)
        await asyncio.sleep(0.01)
    with pytest.raises(PluginFault, match=r"did not respond for 20 s and was stopped"):
        await call
    await plugins.close()


async def test_a_plugin_that_only_takes_its_time_is_left_alone(home: Home) -> None:
    home.tool("slow", "import time\ntime.sleep(1)\nreturn 'done'")
    plugins = home.open("slow")
    plugins.pulse = LivenessCheck(every_seconds=0.05, patience_seconds=60)
    await loaded(plugins)
    assert await called(plugins, "slow", seconds=300) == "done"
    await plugins.close()


async def test_a_plugin_that_fills_its_folder_is_ended_and_stays_off(home: Home) -> None:
    fill = """
    import time
    with open("full", "wb") as out:
        out.write(b"x" * (2 << 20))
    time.sleep(600)
    """
    home.tool("greedy", fill)
    plugins = home.open("greedy", data_mb=1)
    plugins.pulse = LivenessCheck(every_seconds=0.05, patience_seconds=60)
    await loaded(plugins)
    with pytest.raises(PluginFault, match="the limit is 1 MB"):
        await called(plugins, "greedy", seconds=300)
    await plugins.close()
    plugins = home.open("greedy", data_mb=1)
    with pytest.raises(PluginFault, match=r"plugins\.data_mb"):
        await called(plugins, "greedy", seconds=300)
    (home.root / "plugin-data" / "greedy" / "full").unlink()
    assert (await loaded(plugins))["greedy"].status == "loaded"
    await plugins.close()


async def test_many_small_files_count_too(home: Home) -> None:
    many = """
    for n in range(300):
        open(f"f{n}", "w").write("x")
    return "ok"
    """
    home.tool("many", many)
    plugins = home.open("many", data_mb=1)
    await loaded(plugins)
    await called(plugins, "many")
    await plugins.close()
    with pytest.raises(PluginFault, match="the limit is 1 MB"):
        await called(home.open("many", data_mb=1), "many")
