"""`hermes plugins`: from a repository to a running plugin, with nothing run on the way."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hermes.app.start import start
from hermes.core.errors import HermesError
from hermes.plugins.admin import KINDS, PluginAdmin
from hermes.surfaces.cli.root import root
from tests.plugins.sessions.talk import Talk


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words],
        cwd=folder, check=True, capture_output=True, text=True, timeout=60,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def repository(talk: Talk, tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    talk.put("weather/", tmp_path)
    (tmp_path / "weather").rename(folder)
    (folder / "conftest.py").write_text("raise SystemExit('it ran')")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    return folder


def listed(talk: Talk) -> dict[str, dict[str, object]]:
    rows = json.loads(talk.hermes("plugins", "list", "--json"))
    return {row["key"]: row for row in rows if row["source"] != "bundled"}


def test_install_enable_update_and_remove(talk: Talk, repository: Path) -> None:
    said = talk.hermes("plugins", "install", f"file://{repository}")
    assert "its code has not run yet" in said
    assert "conftest.py is a file that other tools run" in said
    assert listed(talk)["weather"]["state"] == "off"
    assert not (talk.home / "plugins" / "weather" / ".git").exists()
    assert "provides tools: weather_now" in talk.hermes("plugins", "enable", "weather")
    assert listed(talk)["weather"]["state"] == "on"
    assert "is unchanged" in talk.hermes("plugins", "update")

    (repository / "__init__.py").write_text("def register(ctx): pass\n")
    git(repository, "commit", "-qam", "Second")
    assert "has changed: __init__.py" in talk.hermes("plugins", "update", "weather")
    assert listed(talk)["weather"]["state"] == "changed"
    talk.hermes("plugins", "enable", "weather")
    assert listed(talk)["weather"]["state"] == "on"

    talk.hermes("plugins", "disable", "weather")
    assert listed(talk)["weather"]["state"] == "off"
    talk.hermes("plugins", "remove", "weather", "--yes")
    assert listed(talk) == {}


def test_a_pinned_plugin_is_not_updated(talk: Talk, repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    talk.hermes("plugins", "install", f"file://{repository}", "--ref", commit, "--enable")
    assert listed(talk)["weather"]["state"] == "on"
    record = json.loads((talk.home / "plugins" / "weather" / ".install.json").read_bytes())
    assert (record["ref"], record["commit"]) == (commit, commit)
    assert refused("plugins", "update", "weather").startswith("weather is pinned to")


def test_a_repository_with_links_is_not_installed(talk: Talk, repository: Path) -> None:
    (repository / "keys").symlink_to("/etc/passwd")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "Link")
    talk.hermes("plugins", "install", f"file://{repository}")
    kept = (talk.home / "plugins" / "weather" / "keys").read_text()
    assert kept == "/etc/passwd"
    assert "link" in refused("plugins", "install", str(repository), "--force")


def test_what_is_there_is_replaced_only_by_force(talk: Talk, repository: Path) -> None:
    talk.hermes("plugins", "install", str(repository))
    assert "add --force" in refused("plugins", "install", str(repository))
    talk.hermes("plugins", "install", str(repository), "--force")


@pytest.mark.parametrize("source", ["nothing", "../up", "ext::sh -c touch", "-u", "a/b/../../c"])
def test_odd_addresses_are_refused(talk: Talk, source: str) -> None:
    with pytest.raises(Exception, match=r"must be a folder|No such option|is outside|git:"):
        CliRunner().invoke(root, ["plugins", "install", "--", source], catch_exceptions=False)


def refused(*words: str) -> str:
    with pytest.raises(HermesError) as error:
        CliRunner().invoke(root, list(words), catch_exceptions=False)
    return str(error.value)


def test_grants_are_written_to_the_settings_and_shown(talk: Talk, tmp_path: Path) -> None:
    talk.put("weather/")
    (tmp_path / "data").mkdir()
    talk.hermes(
        "plugins", "enable", "weather", "--grant", "network", "--grant", f"path={tmp_path}/data"
    )
    about = json.loads(talk.hermes("plugins", "info", "weather", "--json"))
    assert about["grants"]["network"] is True
    assert about["grants"]["paths"] == [f"{tmp_path}/data"]
    assert about["hash"] == about["agreed"]
    assert "Unknown grant" in refused("plugins", "enable", "weather", "--grant", "everything")


def test_to_run_inside_needs_a_clear_yes(talk: Talk) -> None:
    talk.put("weather/")
    assert "--yes" in refused("plugins", "enable", "weather", "--isolation", "in_process")
    talk.hermes("plugins", "enable", "weather", "--isolation", "in_process", "--yes")
    assert listed(talk)["weather"]["isolation"] == "in_process"


def test_the_worst_findings_can_block(talk: Talk) -> None:
    talk.put("weather/")
    talk.write("weather/evil.py", "exec('x')")
    talk.hermes("config", "set", "plugins.block_on_scan", "high")
    assert "because of scan findings" in refused("plugins", "enable", "weather")


async def test_new_plugins_of_every_kind_pass_their_own_tests_and_load(talk: Talk) -> None:
    async with start({}, home=str(talk.home)) as app:
        for kind in KINDS:
            admin = PluginAdmin(app.context, app.plugins.plugins)
            admin.new(f"fresh-{kind.replace('_', '-')}", kind)  # type: ignore[arg-type]
    async with start({}, home=str(talk.home)) as app:
        fresh = [
            row
            for row in PluginAdmin(app.context, app.plugins.plugins).rows()
            if "fresh-" in row.key
        ]
    for row in fresh:
        inside = row.kind in ("exclusive", "platform")
        async with start({}, home=str(talk.home)) as app:
            PluginAdmin(app.context, app.plugins.plugins).enable(
                row.key, isolation="in_process" if inside else ""
            )
    async with start({}, home=str(talk.home)) as app:
        checks = await PluginAdmin(app.context, app.plugins.plugins).doctor()
    assert {each.key for each in checks if each.ok} == {row.key for row in fresh}
    assert len(checks) == len(KINDS)
    # With what a plugin's tests may count on and nothing else that happens to be installed.
    ours = ("-p", "anyio", "-p", "hermes.testing.fixtures", "-p", "no:cacheprovider")
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "pytest", "-q", *ours, "plugins"],
        capture_output=True,
        text=True,
        cwd=talk.home,
        env={"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        timeout=120,
    )
    assert f"{len(KINDS)} passed" in done.stdout, done.stdout


def test_the_doctor_starts_what_is_on_and_says_what_keeps_it_apart(talk: Talk) -> None:
    talk.put("weather/")
    talk.write("bad/plugin.yaml", "name: bad\n")
    talk.write("bad/__init__.py", "raise ValueError('no')\n")
    talk.hermes("plugins", "enable", "weather")
    assert "answers; isolated by" in talk.hermes("plugins", "doctor")
    talk.hermes("plugins", "enable", "bad")
    done = CliRunner().invoke(root, ["plugins", "doctor", "--json"], standalone_mode=False)
    checks = {each["key"]: each["ok"] for each in json.loads(done.output)}
    assert checks == {"bad": False, "weather": True}
    assert done.return_value == 1


def test_a_plugin_that_is_not_there_is_told_with_a_next_step(talk: Talk) -> None:
    assert "hermes plugins list" in refused("plugins", "info", "ghost")


def test_safe_mode_switches_off_what_is_not_the_programs_own(talk: Talk) -> None:
    talk.put("dice/")
    talk.hermes("plugins", "enable", "dice")
    rows = json.loads(talk.hermes("--safe-mode", "plugins", "list", "--json"))
    assert [row["state"] for row in rows if row["key"] == "dice"] == ["off"]
    assert "There is no command" in refused("--safe-mode", "throw-dice")
    assert "There is no command" in refused("throw-dices")


def test_the_doctor_tells_how_plugins_do_without_starting_them(talk: Talk) -> None:
    talk.put("weather/")
    talk.hermes("plugins", "enable", "weather")
    log = talk.home / "logs" / "plugins" / "weather.log"
    assert "weather runs in a process of its own" in talk.hermes("doctor")
    assert not log.exists()
    talk.write("weather/__init__.py", "x = 1\n")
    assert "weather: Its files have changed" in talk.hermes("doctor")
