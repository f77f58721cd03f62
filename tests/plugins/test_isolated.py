"""Plugins in processes of their own."""

from __future__ import annotations

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
