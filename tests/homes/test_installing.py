"""Hermes installed from a clone, a wheel and an sdist into fresh environments: every hint works
there, and an update comes from where the installation came from."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hermes.config.extras import DISTRIBUTION, EXTRAS, need_extra
from tests.homes.fresh_environment import SECONDS, FreshEnvironment, build_wheel_of

ROOT = Path(__file__).parents[2]
FILES = ("pyproject.toml", "README.md", "LICENSE", "scripts/bin", "src")


def copy_of_the_source(folder: Path, version: str = "") -> Path:
    """A small copy of this checkout, as a version of its own."""
    folder.mkdir(parents=True)
    for name in FILES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "skills", "*.pyc")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    # The bundled skills are many files that no test here needs; their code is.
    shutil.copytree(
        ROOT / "src/hermes/skills",
        folder / "src/hermes/skills",
        ignore=shutil.ignore_patterns("__pycache__", "bundled"),
    )
    (folder / "src/hermes/skills/bundled").mkdir()
    if version:
        (folder / "src/hermes/version.py").write_text(
            f'"""The version."""\n\n__version__ = "{version}"\n'
        )
    return folder


def build(source: Path, to: Path, kind: str) -> Path:
    line = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(to)]
    subprocess.run(line, cwd=source, check=True, capture_output=True, timeout=SECONDS)
    return max(to.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    build_wheel_of("agent-client-protocol", folder)
    return folder


@pytest.fixture
def fresh(tmp_path: Path, wheels: Path) -> FreshEnvironment:
    return FreshEnvironment(tmp_path, wheels)


def install(fresh: FreshEnvironment, kind: str) -> Path:
    """Install Hermes and return where it came from."""
    source = copy_of_the_source(fresh.folder / "source")
    if kind == "clone":
        fresh.pip("--editable", str(source))
        return source
    fresh.pip(str(file := build(source, fresh.folder / "dist", kind)))
    shutil.rmtree(source)
    return file


def test_the_table_of_extras_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    assert {extra.name for extra in EXTRAS} == set(project["optional-dependencies"])


def test_no_text_of_the_project_names_the_package_of_another_product() -> None:
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    advice = re.compile(r"pip install[^`\n]*hermes|hermes-(agent|one)\[")
    assert [str(path) for path in texts if advice.search(path.read_text("utf-8"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clone", "wheel", "sdist"])
def test_the_hint_for_a_missing_extra_installs_it(fresh: FreshEnvironment, kind: str) -> None:
    install(fresh, kind)
    refused = fresh("hermes --provider offline acp --check")
    assert refused.returncode == 2
    assert need_extra("Editors", "acp") in refused.stderr
    hint = re.findall(r"`(hermes [^`]+)`", refused.stderr)[0]
    before = json.loads(fresh("hermes extras list --json").stdout)
    added = fresh(hint)
    assert added.returncode == 0, added.stderr
    assert "Ready: " in fresh("hermes --provider offline acp --check").stdout
    after = json.loads(fresh("hermes extras list --json").stdout)
    changed = [row["name"] for row, now in zip(before, after, strict=True) if row != now]
    assert changed == ["acp", "dev"]  # the tools of developers include it
    assert fresh("hermes extras remove acp --yes").returncode == 0
    assert json.loads(fresh("hermes extras list --json").stdout) == before


@pytest.mark.slow
def test_a_newer_wheel_beside_the_installed_one_is_the_update(fresh: FreshEnvironment) -> None:
    wheel = install(fresh, "wheel")
    assert json.loads(fresh("hermes update --check --json").stdout)["new"] is False
    newer = copy_of_the_source(fresh.folder / "newer", "9.9.1")
    build(newer, wheel.parent, "wheel")
    checked = fresh("hermes update --check")
    assert "9.9.1 is available" in checked.stdout
    assert "install --upgrade" in checked.stdout
    assert "9.9.1" not in fresh("hermes --version").stdout
    asked = fresh("hermes update")
    assert asked.returncode == 2
    assert "confirm with --yes" in asked.stderr
    done = fresh("hermes update --yes")
    assert done.returncode == 0, done.stderr
    assert "9.9.1" in fresh("hermes --version").stdout


@pytest.mark.slow
def test_another_product_of_the_same_name_on_an_index_is_refused(fresh: FreshEnvironment) -> None:
    install(fresh, "wheel")
    # An index of one folder; without the record of a file, the installation came from an index.
    next(fresh.folder.glob("venv/lib/python3*/site-packages/hermes_one-*/direct_url.json")).unlink()
    stranger = fresh.folder / "stranger"
    (stranger / "src/hermes").mkdir(parents=True)
    (stranger / "src/hermes/__init__.py").write_text('raise SystemExit("not Hermes")\n')
    (stranger / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "hermes-one"\nversion = "9.9.2"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/hermes"]\n'
    )
    shelf = fresh.folder / "index"
    build(stranger, shelf, "wheel")
    refused = fresh(f"PIP_FIND_LINKS={shelf} hermes update --yes")
    assert refused.returncode == 1
    assert "is not this Hermes; nothing was changed" in refused.stderr
    assert fresh("hermes --version").returncode == 0
    next(shelf.glob("hermes_one-9.9.2-*")).unlink()
    build(copy_of_the_source(fresh.folder / "newer", "9.9.1"), shelf, "wheel")
    done = fresh(f"PIP_FIND_LINKS={shelf} hermes update --yes")
    assert done.returncode == 0, done.stderr
    assert "9.9.1" in fresh("hermes --version").stdout
