"""From files to a running plugin and back: what is loaded, what is not, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.config.extension_settings import PluginEntrySettings, PluginGrantSettings
from hermes.core.errors import ConfigError
from hermes.plugins.isolated import MOST_CRASHES, CrashCounter
from hermes.plugins.protocol import NO_CALLER, PluginFault
from hermes.testing.clock import VirtualClock
from tests.plugins.stage import CANARY, Home, called, loaded

HELLO = "return 'hello'"


async def fault_of(home: Home, key: str = "bad", **rules: object) -> str:
    plugins = home.open(key, **rules)  # type: ignore[arg-type]
    states = await loaded(plugins)
    await plugins.close()
    assert states[key].status == "error"
    return states[key].fault


async def test_nothing_runs_before_somebody_agreed(home: Home) -> None:
    mark = home.root / "plugin-data" / "new" / "mark"
    home.write("new", "open('mark', 'w')\ndef register(ctx): pass")
    plugins = home.open("new", agree=False)
    states = await loaded(plugins)
    assert states["new"].status == "changed"
    assert "not approved yet" in states["new"].fault
    assert not mark.exists()
    await plugins.close()
    plugins = home.open("new")
    assert (await loaded(plugins))["new"].status == "loaded"
    assert mark.exists()
    await plugins.close()


async def test_files_that_changed_after_consent_are_not_run(home: Home) -> None:
    folder = home.tool("swap", HELLO)
    plugins = home.open("swap")
    (folder / "helper.py").write_text("x = 1")
    plugins = home.open("swap", agree=False)
    assert "files have changed" in (await loaded(plugins))["swap"].fault
    await plugins.close()


async def test_files_that_change_between_the_look_and_the_start_are_not_run(home: Home) -> None:
    folder = home.tool("swap", HELLO)
    plugins = home.open("swap")
    (folder / "__init__.py").write_text("open('mark', 'w')\ndef register(ctx): pass")
    assert "files have changed" in (await loaded(plugins))["swap"].fault
    assert not (home.root / "plugin-data" / "swap" / "mark").exists()
    await plugins.close()


async def test_what_runs_is_a_copy_that_later_changes_do_not_reach(home: Home) -> None:
    folder = home.tool("late", "from . import words\nreturn words.SAID", **{"words.py": "SAID = 1"})
    plugins = home.open("late")
    await loaded(plugins)
    (folder / "words.py").write_text("SAID = 2")
    assert await called(plugins, "late") == 1
    await plugins.close()


async def test_a_copy_that_somebody_changed_is_made_anew(home: Home) -> None:
    home.tool("copy", HELLO)
    plugins = home.open("copy")
    await loaded(plugins)
    await plugins.close()
    [file] = (home.root / "cache" / "plugins" / "copies").rglob("__init__.py")
    file.chmod(0o600)
    file.write_text("def register(ctx): raise ValueError('evil')")
    plugins = home.open("copy")
    await plugins.load(tuple(plugins.usable()), known=False)
    assert await called(plugins, "copy") == "hello"
    await plugins.close()


@pytest.mark.parametrize(
    ("code", "manifest", "words"),
    [
        (
            "def register(ctx): ctx.register_tool('other', 't', {}, print)",
            "",
            "`provides_tools` does not list",
        ),
        ("def register(ctx): ctx.register_hook('on_session_end', print)", "", "provides_hooks"),
        ("def register(ctx): ctx.register_command('go', print)", "", "provides_commands"),
        ("def register(ctx): ctx.register_skill('s', '.')", "", "provides_skills"),
        ("def register(ctx): raise RuntimeError('no')", "", "RuntimeError: no"),
        ("import nothing_of_that_name", "", "ModuleNotFoundError"),
        ("x = (", "", "SyntaxError"),
        ("x = 1", "", "needs `register(ctx)` or"),
        ("def register(ctx): ctx.register_browser_provider(NAMED)", "", "method `create_session`"),
        ("def register(ctx): ctx.register_platform('x', 'X', 1)", "", "creates its adapter"),
        ("def register(ctx): ctx.register_platform('x', 'X', print)", "", "category: platforms"),
        ("def register(ctx): ctx.register_memory_provider(1)", "", "needs a `name`"),
        ("def register(ctx): ctx.register_tts_provider(NAMED)", "", "a method `synthesize`"),
        ("def register(ctx): ctx.register_web_search_provider(NAMED)", "", "one of the methods"),
        ("def register(ctx): ctx.register_tool('go', 't', 'text', print)", "", "not valid"),
        (
            "def register(ctx): ctx.register_tool('go', 't', {'x': 'y' * 20000}, print)",
            "",
            "longer than",
        ),
        (
            "def register(ctx): ctx.register_tool('g o', 't', {}, print)",
            "provides_tools: ['g o']",
            "is not a valid tool name",
        ),
        ("import os\nos._exit(3)", "", "crashed at startup (exit 3)"),
    ],
)
async def test_what_does_not_fit_is_not_loaded_and_says_why(
    home: Home, code: str, manifest: str, words: str
) -> None:
    named = "class NAMED: name = 'n'\n"
    home.write("bad", named + code, manifest)
    assert words in await fault_of(home)


async def test_a_plugin_that_hangs_while_it_is_loaded_is_stopped(home: Home) -> None:
    home.write("bad", "while True: pass")
    assert "did not load within 0.5 s" in await fault_of(home, load_timeout=0.5)


async def test_half_of_a_plugin_is_not_kept(home: Home) -> None:
    code = "def register(ctx):\n ctx.register_tool('go', 't', {}, print)\n raise ValueError('half')"
    home.write("bad", code)
    home.tool("good", HELLO)
    plugins = home.open("bad", "good")
    states = await loaded(plugins)
    assert (states["bad"].status, states["good"].status) == ("error", "loaded")
    assert [tool.name for tool in plugins.tools()] == ["go"]
    assert await called(plugins, "good") == "hello"
    await plugins.close()


async def test_a_tool_takes_the_name_of_another_only_by_leave(home: Home) -> None:
    code = "def register(ctx):\n ctx.register_tool('go', 't', {}, print, override=True)"
    home.write("bad", code)
    assert "another tool named go" in await fault_of(home, taken=("go",))
    leave = {"bad": PluginEntrySettings(allow_tool_override=True)}
    plugins = home.open("bad", taken=("go",), entries=leave)
    assert (await loaded(plugins))["bad"].status == "loaded"
    await plugins.close()


async def test_a_description_that_gives_orders_is_refused(home: Home) -> None:
    home.tool("bad", HELLO)
    assert "looks like a prompt injection" in await fault_of(
        home, scan=lambda _text: ("override", True)
    )


async def test_variables_are_passed_on_by_name_and_keys_of_providers_by_grant(home: Home) -> None:
    home.variables["WEATHER_KEY"] = "mine"
    manifest = "provides_tools: [go]\nrequires_env: [WEATHER_KEY]"
    home.tool("env", "import os\nreturn [CTX.get_secret('WEATHER_KEY'), dict(os.environ)]",
              manifest=manifest)  # fmt: skip
    plugins = home.open("env")
    await loaded(plugins)
    secret, environment = await called(plugins, "env")
    assert secret == environment["WEATHER_KEY"] == "mine"
    assert CANARY not in environment.values()
    await plugins.close()


async def test_the_key_of_a_provider_needs_a_grant_by_its_name(home: Home) -> None:
    home.tool("key", "return CTX.get_secret('OPENAI_API_KEY')",
              manifest="provides_tools: [go]\nrequires_env: [OPENAI_API_KEY]")  # fmt: skip
    plugins = home.open("key")
    assert plugins.state("key").status == "needs configuration"
    grant = {"key": PluginEntrySettings(grants=PluginGrantSettings(env=("OPENAI_API_KEY",)))}
    plugins = home.open("key", entries=grant)
    await loaded(plugins)
    assert await called(plugins, "key") == CANARY
    await plugins.close()


async def test_a_granted_folder_can_be_changed_and_nothing_beside_it(home: Home) -> None:
    (home.person / "data").mkdir()
    home.tool("notes", "open(args['path'], 'w').write('x')\nreturn open(args['path']).read()")
    plugins = home.open(
        "notes",
        entries={"notes": PluginEntrySettings(grants=PluginGrantSettings(paths=("~/data",)))},
    )
    await loaded(plugins)
    assert await called(plugins, "notes", {"path": str(home.person / "data" / "x")}) == "x"
    with pytest.raises(PluginFault, match="PermissionError"):
        await called(plugins, "notes", {"path": str(home.person / "x")})
    await plugins.close()


@pytest.mark.parametrize("path", ["~", "~/.hermes", "/", "~/.hermes/plugin-data"])
async def test_the_home_of_hermes_is_never_granted(home: Home, path: str) -> None:
    home.tool("bad", HELLO)
    entry = {"bad": PluginEntrySettings(grants=PluginGrantSettings(paths=(path,)))}
    assert "cannot be granted" in await fault_of(home, entries=entry)


async def test_a_plugin_with_the_grant_starts_programs(home: Home) -> None:
    home.tool("run", "import subprocess\nreturn subprocess.check_output(['echo', 'hi']).decode()")
    plugins = home.open(
        "run", entries={"run": PluginEntrySettings(grants=PluginGrantSettings(processes=True))}
    )
    await loaded(plugins)
    assert await called(plugins, "run") == "hi\n"
    await plugins.close()


async def test_a_plugin_with_the_grant_reaches_the_network(home: Home) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"welcome")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    home.tool("net", "import socket\nlink = socket.create_connection(('127.0.0.1', args['port']))\n"
                     "return link.recv(100).decode()")  # fmt: skip
    plugins = home.open(
        "net", entries={"net": PluginEntrySettings(grants=PluginGrantSettings(network=True))}
    )
    await loaded(plugins)
    assert await called(plugins, "net", {"port": port}) == "welcome"
    await plugins.close()
    server.close()


async def test_a_plugin_rests_after_each_crash_and_is_given_up_after_the_third() -> None:
    clock = VirtualClock()
    strikes = CrashCounter(clock)
    pauses = []
    for _ in range(MOST_CRASHES):
        assert not strikes.out
        strikes.count()
        pauses.append(strikes.pause)
        await clock.advance(strikes.pause)
        assert strikes.pause == 0
    assert pauses == [1, 4, 16]
    assert strikes.out


async def test_crashes_of_long_ago_are_forgiven() -> None:
    clock = VirtualClock()
    strikes = CrashCounter(clock)
    for _ in range(2 * MOST_CRASHES):
        strikes.count()
        await clock.advance(400)
    assert not strikes.out


async def test_a_crashed_plugin_says_when_it_can_be_used_again(home: Home) -> None:
    home.tool("bad", "import os\nos._exit(5)")
    plugins = home.open("bad")
    await loaded(plugins)
    with pytest.raises(PluginFault, match=r"crashed \(exit 5\)"):
        await called(plugins, "bad")
    with pytest.raises(PluginFault, match="can be used again in 1 s"):
        await called(plugins, "bad")
    await plugins.close()


async def test_several_calls_run_at_once_and_fall_together_as_one_crash(home: Home) -> None:
    home.tool("bad", "import os, time\ntime.sleep(0.3)\nos._exit(1)")
    plugins = home.open("bad")
    await loaded(plugins)
    calls = [called(plugins, "bad") for _ in range(4)]
    faults = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, PluginFault) for each in faults)
    with pytest.raises(PluginFault, match="again in 1 s"):
        await called(plugins, "bad")
    await plugins.close()


async def test_async_handlers_share_one_loop(home: Home) -> None:
    code = """
    import asyncio
    async def go(args, session_id="", **kw):
        global LOOP
        LOOP = globals().get("LOOP") or asyncio.get_running_loop()
        await asyncio.sleep(0)
        return LOOP is asyncio.get_running_loop()
    async def register(ctx):
        ctx.register_tool("go", "t", {}, go, is_async=True)
    """
    home.write("wait", code)
    plugins = home.open("wait")
    await loaded(plugins)
    assert [await called(plugins, "wait") for _ in range(3)] == [True, True, True]
    await plugins.close()


async def test_safe_mode_loads_nothing_of_others(home: Home) -> None:
    home.tool("far", HELLO)
    plugins = home.open("far", safe_mode=True)
    assert [state.status for state in plugins.states] == ["off"]
    assert plugins.tools() == []


async def test_disabled_wins_over_enabled(home: Home) -> None:
    home.tool("far", HELLO)
    assert home.open("far", disabled=("far",)).state("far").status == "off"


async def test_a_plugin_that_must_run_inside_says_how(home: Home) -> None:
    home.write("chat", "def register(ctx): pass", "kind: platform")
    fault = home.open("chat").state("chat").fault
    assert "--isolation in_process" in fault


async def test_inside_hermes_a_trusted_plugin_works_the_same(home: Home) -> None:
    home.tool("near", "args['x'].append(1)\nimport os\nreturn [os.getpid(), args]")
    plugins = home.open("near", entries={"near": PluginEntrySettings(isolation="in_process")})
    assert (await loaded(plugins))["near"].level == "in_process"
    given = {"x": [0]}
    import os

    assert await called(plugins, "near", given) == [os.getpid(), {"x": [0, 1]}]
    assert given == {"x": [0]}
    await plugins.close()


async def test_inside_hermes_errors_and_hangs_stay_with_the_call(home: Home) -> None:
    waits = "import os, time\nwhile not os.path.exists(args['go']): time.sleep(0.01)\n"
    home.tool("near", waits + "raise ValueError('no')")
    go = home.person / "go"
    plugins = home.open("near", entries={"near": PluginEntrySettings(isolation="in_process")})
    await loaded(plugins)
    with pytest.raises(PluginFault, match="did not answer"):
        await called(plugins, "near", {"go": str(go)}, seconds=0.1)
    go.touch()
    with pytest.raises(PluginFault, match="ValueError: no"):
        await called(plugins, "near", {"go": str(go)})
    await plugins.close()


FAREWELL = """
def broken():
    raise RuntimeError("no check")

def go(args, **kw):
    return "went"

def unregister():
    raise ValueError("stuck")

def register(ctx):
    ctx.register_tool("go", "test", {"description": "Go."}, go, check_fn=broken)
"""


async def test_inside_hermes_errors_outside_of_calls_are_logged_and_shown(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.write("near", FAREWELL)
    plugins = home.open("near", entries={"near": PluginEntrySettings(isolation="in_process")})
    await loaded(plugins)
    assert "RuntimeError: no check" in caplog.text
    await plugins.close()
    assert plugins.state("near").fault == "Plugin near failed to stop: ValueError: stuck"
    assert [getattr(each, "why", "") for each in caplog.records][-1] == plugins.state("near").fault


async def test_errors_outside_of_calls_are_in_the_log_of_the_plugin(home: Home) -> None:
    home.write("apart", FAREWELL)
    plugins = home.open("apart")
    await loaded(plugins)
    await plugins.close()
    text = (home.root / "logs" / "plugins" / "apart.log").read_text()
    assert "RuntimeError: no check" in text
    assert "ValueError: stuck" in text


async def test_an_author_may_ask_for_more_distance_but_not_for_less(home: Home) -> None:
    home.tool("a", HELLO, manifest="provides_tools: [go]\nisolation: in_process")
    home.tool("b", HELLO, manifest="provides_tools: [go]\nisolation: process")
    plugins = home.open("a", "b", entries={"b": PluginEntrySettings(isolation="in_process")})
    assert [state.level for state in plugins.states] == ["process", "process"]


async def test_changes_of_a_plugin_in_development_are_followed(home: Home) -> None:
    entry = {"dev": PluginEntrySettings(development=True)}
    folder = home.tool("dev", "return 1")
    plugins = home.open("dev", agree=False, entries=entry)
    await loaded(plugins)
    [tool] = plugins.tools()
    assert (
        await (await plugins.ready("dev")).call("tool", "go", {}, seconds=9, caller=NO_CALLER) == 1
    )
    home.tool("dev", "return 2")
    assert folder.is_dir()
    assert (
        await (await plugins.ready("dev")).call("tool", "go", {}, seconds=9, caller=NO_CALLER) == 2
    )
    assert plugins.reloaded == {"dev"}
    assert tool.name == "go"
    await plugins.close()


async def test_where_confinement_is_required_and_missing_nothing_runs(home: Home) -> None:
    home.tool("bad", HELLO)
    home.variables["PATH"] = str(home.person)
    fault = await fault_of(home, sandbox="require", means="bubblewrap")
    assert "must run in a sandbox" in fault


def test_a_link_is_no_plugin(home: Home, tmp_path: Path) -> None:
    from hermes.plugins.contents import read_contents

    folder = home.tool("link", HELLO)
    (folder / "keys").symlink_to(home.root / ".env")
    with pytest.raises(ConfigError, match="link"):
        read_contents(folder)
    (home.plugins / "whole").symlink_to(folder)
    with pytest.raises(ConfigError, match="link"):
        read_contents(home.plugins / "whole")
