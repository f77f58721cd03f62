"""Every sample of the handbook does what the handbook says, from its files to the model."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.app.start import start
from hermes.commands.catalogue import COMMANDS, DYNAMIC_COMMANDS
from hermes.commands.registry import CommandRegistry, ShowText
from hermes.core.effects import CallServer
from hermes.core.events import ToolIntended
from hermes.testing.steps import calls, says
from tests.plugins.sessions.talk import Talk, results, use


async def enable(talk: Talk, *names: str) -> None:
    for name in names:
        await asyncio.to_thread(talk.hermes, "plugins", "enable", name)


async def test_a_tool_of_a_plugin_is_found_judged_and_used(talk: Talk) -> None:
    talk.put("weather/")
    await enable(talk, "weather")
    records = await talk.say(
        calls("tool_search", query="weather of a city"),
        use("weather_now", place="Bergen"),
        says("Rain."),
    )
    found, answer = results(records)
    assert "weather_now" in found.text
    assert answer.text == '{"place":"Bergen","weather":"rain, 9 degrees"}'
    assert (answer.origin, answer.failed) == ("plugin:weather", False)
    judged = [
        each.effect
        for record in records
        if isinstance(record.event, ToolIntended)
        for each in record.event.judged
    ]
    assert judged == [
        CallServer(server="plugin:weather", tool="weather_now", arguments='{"place":"Bergen"}')
    ]


async def test_a_plugin_that_is_known_is_not_started_until_it_is_used(talk: Talk) -> None:
    talk.put("weather/")
    await enable(talk, "weather")
    await talk.say(says("Hello."))
    log = talk.home / "logs" / "plugins" / "weather.log"
    log.unlink()
    records = await talk.say(calls("tool_search", query="weather"), says("Hello again."))
    assert "weather_now" in results(records)[0].text
    assert not log.exists()


async def test_a_hook_of_a_plugin_is_called_with_a_copy(talk: Talk) -> None:
    talk.put("diary/")
    await enable(talk, "diary")
    async with start({}, home=str(talk.home)) as app:
        await app.plugins.offer()
        payload = {"tool_name": "terminal", "session_id": "s", "args": {"path": Path("/x")}}
        await app.hooks.registry.fire("post_tool_call", **payload)
    assert (talk.home / "plugin-data" / "diary" / "tools.txt").read_text() == "terminal\n"


async def test_an_unknown_hook_fails_its_plugin_alone(talk: Talk) -> None:
    talk.put("weather/")
    talk.write("odd/plugin.yaml", "name: odd\nprovides_hooks: [on_full_moon]\n")
    talk.write("odd/__init__.py", "def register(ctx): ctx.register_hook('on_full_moon', print)\n")
    await enable(talk, "odd", "weather")
    async with start({}, home=str(talk.home)) as app:
        await app.plugins.offer()
        states = {each.plugin.key: each.status for each in app.plugins.plugins.states}
        assert (states["odd"], states["weather"]) == ("error", "loaded")
        assert "There is no hook 'on_full_moon'" in "".join(app.context.notices)
        assert not app.hooks.registry.has()


class Place:
    """Where a slash command is given."""

    def __init__(self, app: App, session: object) -> None:
        self.app = app
        self.session = session
        self.registry = CommandRegistry(COMMANDS, "cli", extra=DYNAMIC_COMMANDS)
        self.background_work = None


async def test_commands_of_a_plugin_work_in_the_chat(talk: Talk) -> None:
    talk.put("dice/")
    await enable(talk, "dice")
    async with start({}, home=str(talk.home)) as app:
        here = Place(app, await talk.session(app))
        said = await here.registry.run("/dice 1", here)  # type: ignore[arg-type]
        assert said == ShowText(text="You threw 1 of 1.")
        names = await here.registry.complete("/di", here)  # type: ignore[arg-type]
        assert "dice" in {each.text for each in names}
        listed = await here.registry.run("/plugins", here)  # type: ignore[arg-type]
        assert isinstance(listed, ShowText)
        assert "dice" in listed.text
        assert "loaded" in listed.text


def test_commands_of_a_plugin_work_in_the_shell(talk: Talk) -> None:
    talk.put("dice/")
    talk.hermes("plugins", "enable", "dice")
    assert talk.hermes("throw-dice", "--sides", "1") == "You threw 1 of 1.\n"


async def test_a_skill_of_a_plugin_is_found_and_counts_as_a_strangers(talk: Talk) -> None:
    talk.put("tidy/")
    await enable(talk, "tidy")
    records = await talk.say(calls("skill_view", name="tidy.folders"), says("Moved."))
    [shown] = results(records)
    assert "List first, ask second" in shown.text
    assert shown.origin == "skill:tidy.folders"
    await asyncio.to_thread(talk.hermes, "plugins", "disable", "tidy")
    records = await talk.say(calls("skill_view", name="tidy.folders"), says("Gone."))
    assert results(records)[0].failed


async def test_an_image_provider_of_a_plugin_draws_from_its_own_process(talk: Talk) -> None:
    talk.put("image_gen/squares/")
    await enable(talk, "image_gen/squares")
    async with start({}, home=str(talk.home)) as app:
        await app.plugins.offer()
        providers = app.shared.images.providers
        provider = providers.get_provider("squares")
        assert provider is not None
        assert providers.source("squares") == "user"
        drawn = await asyncio.to_thread(provider.generate, "a corgi")
        assert (drawn["success"], drawn["prompt"]) == (True, "a corgi")


async def test_a_plugin_of_one_file_is_a_tool(talk: Talk) -> None:
    talk.put("shout.py")
    await enable(talk, "shout")
    records = await talk.say(use("shout", text="hello"), says("Loud."))
    assert results(records)[0].text == "HELLO!"


async def test_a_package_that_pip_has_installed_is_a_plugin(
    talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.put("package/", tmp_path)
    site = tmp_path / "site"
    await asyncio.to_thread(_install, tmp_path / "package", site)
    monkeypatch.syspath_prepend(str(site))
    await enable(talk, "coin")
    assert '"source":"pip"' in await asyncio.to_thread(talk.hermes, "plugins", "list", "--json")
    records = await talk.say(use("flip_coin", seed=1), says("Heads."))
    answer = results(records)[0]
    assert (answer.text, answer.origin) == ("heads", "plugin:coin")


def _install(package: Path, site: Path) -> None:
    """As pip would: a wheel, unpacked where Python imports from. Where there is nothing to build
    one with, the same files by hand."""
    site.mkdir()
    if find_spec("hatchling") is None:
        shutil.copytree(package / "hermes_coin", site / "hermes_coin")
        info = site / "hermes_coin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-coin\nVersion: 1.0\n")
        points = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"]
        [(group, named)] = points.items()
        lines = [f"[{group}]", *(f"{name} = {value}" for name, value in named.items())]
        (info / "entry_points.txt").write_text("\n".join(lines))
        return
    build = "from hatchling.build import build_wheel as b; import sys; b(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(site)], cwd=package, check=True, capture_output=True
    )
    [wheel] = site.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
