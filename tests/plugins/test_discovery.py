"""Plugins are found by their manifests, and none of their code runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.plugins.discovery import SearchPaths, discover
from hermes.plugins.manifest import (
    PluginVariable,
    manifest_of_module,
    read_manifest,
    validate_manifest,
)
from hermes.plugins.permissions import satisfies
from tests.plugins.stage import Home, loaded


def plugin(folder: Path, manifest: str, code: str = "raise SystemExit('it ran')") -> Path:
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(manifest)
    (folder / "__init__.py").write_text(code)
    return folder


def places(root: Path, **more: object) -> SearchPaths:
    return SearchPaths(
        user=str(root / "user"),
        bundled=str(root / "bundled"),
        paths=(str(root / "site"),),
        **more,  # type: ignore[arg-type]
    )


def test_folders_categories_and_files_are_found_and_nothing_runs(tmp_path: Path) -> None:
    user = tmp_path / "user"
    plugin(user / "one", "name: one")
    plugin(user / "image_gen" / "two", "name: two\nkind: backend")
    plugin(user / "other" / "three", "name: three")
    (user / "four.py").write_text("PLUGIN = {'name': 'four'}\nraise SystemExit('it ran')")
    (user / "five.py").write_text("x = 1")
    (user / ".hidden").mkdir()
    found = discover(places(tmp_path))
    assert list(found) == ["five", "four", "image_gen/two", "one", "other"]
    assert found["image_gen/two"].category == "image_gen"
    assert found["other"].fault == "plugin.yaml is missing."
    assert "needs a PLUGIN constant" in found["five"].fault
    assert {found[key].fault for key in ("one", "four", "image_gen/two")} == {""}


def test_a_higher_source_replaces_a_lower_one_and_says_so(tmp_path: Path) -> None:
    plugin(tmp_path / "bundled" / "a", "name: a\nversion: '1'")
    plugin(tmp_path / "user" / "a", "name: a\nversion: '2'")
    plugin(tmp_path / "project" / "a", "name: a\nversion: '3'")
    found = discover(places(tmp_path))["a"]
    assert (found.source, found.overrides) == ("user", "bundled")
    found = discover(places(tmp_path, project=str(tmp_path / "project")))["a"]
    assert (found.source, found.overrides) == ("project", "user")


def test_what_remembers_is_not_shadowed_without_leave(tmp_path: Path) -> None:
    plugin(tmp_path / "bundled" / "memory" / "m", "name: m")
    plugin(tmp_path / "user" / "memory" / "m", "name: m")
    assert discover(places(tmp_path))["memory/m"].source == "bundled"
    leave = places(tmp_path, allow_override=("memory/m",))
    assert discover(leave)["memory/m"].source == "user"


def test_packages_are_read_without_importing_what_is_around_them(tmp_path: Path) -> None:
    site = tmp_path / "site"
    plugin(site / "outer" / "inner", "name: inner")
    (site / "outer" / "__init__.py").write_text("raise SystemExit('it ran')")
    info = site / "outer-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: outer\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hermes_agent.plugins]\nin = outer.inner:begin\ngone = nowhere\n"
        "[hermes_agent.memory_providers]\nkeeper = outer.inner\n"
    )
    found = discover(places(tmp_path))
    assert found["in"].path == str(site / "outer")
    assert (found["in"].module, found["in"].attribute) == ("outer.inner", "begin")
    assert found["in"].name == "inner"
    assert "is missing" in found["gone"].fault
    assert (found["keeper"].category, found["in"].category) == ("memory", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: Big", "is not a valid plugin name"),
        ("name: ../up", "is not a valid plugin name"),
        ("version: '1'", "name"),
        ("name: a\nodd: 1", "odd"),
        ("name: a\nkind: virus", "kind"),
        ("name: a\nprovides_tools: all", "provides_tools"),
        ("name: a\nrequires_env: [LD_PRELOAD]", "LD_PRELOAD"),
        ("name: a\nrequires_env: [PYTHONPATH]", "PYTHONPATH"),
        ("name: a\nrequires_env: ['lower']", "lower"),
        ("- a", "key: value"),
        ("name: [", "not YAML"),
        ("name: !!python/object/apply:os.system ['touch ran']", "not YAML"),
        ("name: a\nprovides_tools: &x [*x]", "manifest|not YAML"),
        ("x" * 70_000, "longer than"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_why(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "plugin.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_manifest(file)
    assert not Path("ran").exists()


def test_variables_are_names_or_told_in_full() -> None:
    manifest = validate_manifest(
        {"name": "a", "requires_env": ["ONE", {"name": "TWO", "secret": False, "required": False}]}
    )
    assert manifest.requires_env == (
        PluginVariable(name="ONE"),
        PluginVariable(name="TWO", secret=False, required=False),
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("PLUGIN = {'name': input()}", "a literal without code"),
        ("PLUGIN = dict(name='a')", "a literal without code"),
        ("PLUGIN = ['a']", "must be a dict"),
        ("x = (", "as Python"),
    ],
)
def test_constants_of_a_file_are_read_and_never_run(tmp_path: Path, code: str, words: str) -> None:
    file = tmp_path / "one.py"
    file.write_text(code)
    with pytest.raises(ConfigError, match=words):
        manifest_of_module(file)


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ("", True), (">=0.1", True), (">=0.2", False), ("<1", True), (">=0.1, <0.1.5", True),
        ("==0.1.3", True), ("==0.1", False), ("!=0.1.3", False), (">0.1.3", False),
        ("whatever", False),
    ],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(wanted: str, holds: bool) -> None:
    assert satisfies("0.1.3", wanted) is holds


async def test_a_plugin_of_a_project_is_agreed_to_for_that_project_alone(home: Home) -> None:
    code = "def register(ctx): ctx.register_tool('go', 't', {}, lambda args: 'here')"
    for name in ("a", "b"):
        plugin(home.person / name, "", "")
        plugin(home.person / name / "p", "name: p\nprovides_tools: [go]", code)
    one = SearchPaths(user=str(home.plugins), pip=False, bundled="", project=str(home.person / "a"))
    other = SearchPaths(
        user=str(home.plugins), pip=False, bundled="", project=str(home.person / "b")
    )
    plugins = home.open("p", places=one)
    assert (await loaded(plugins))["p"].status == "loaded"
    await plugins.close()
    assert home.open("p", agree=False, places=other).state("p").status == "changed"
    assert home.open("p", agree=False, places=one).state("p").status == "on"


async def test_a_newer_hermes_is_asked_for_in_words(home: Home) -> None:
    home.write("new", "", "requires_hermes: '>=9'")
    assert home.open("new").state("new").fault == "It needs Hermes >=9; this is 0.1.0."
