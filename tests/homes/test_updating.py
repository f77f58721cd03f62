"""A checkout that learns of newer commits and moves forward to them, and never over changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.homes.installation import Installation, installation
from hermes.homes.updating import check_for_update, update


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    run = subprocess.run(
        ["git", *who, *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return run.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init")
    (folder / "a.txt").write_text("1\n")
    git(folder, "add", "."), git(folder, "commit", "-m", "first")
    return folder


@pytest.fixture
def here(tmp_path: Path, upstream: Path) -> Installation:
    git(tmp_path, "clone", str(upstream), "here")
    return Installation(kind="checkout", path=tmp_path / "here")


def new_commit(upstream: Path) -> None:
    (upstream / "a.txt").write_text("2\n")
    git(upstream, "commit", "-a", "-m", "second: better")


async def test_the_newest_has_no_news(here: Installation) -> None:
    found = await check_for_update(here)
    assert not found.is_new
    assert found.changes == ()


async def test_news_are_told_and_taken(here: Installation, upstream: Path) -> None:
    new_commit(upstream)
    found = await check_for_update(here)
    assert found.is_new
    assert found.changes == ("second: better",)
    assert (here.path / "a.txt").read_text() == "1\n"
    await update(here, found)
    assert (here.path / "a.txt").read_text() == "2\n"
    assert not (await check_for_update(here)).is_new


async def test_commits_of_ones_own_are_not_news(here: Installation) -> None:
    (here.path / "b.txt").write_text("mine\n")
    git(here.path, "add", "."), git(here.path, "commit", "-m", "mine")
    assert not (await check_for_update(here)).is_new


async def test_changes_of_ones_own_stay(here: Installation, upstream: Path) -> None:
    new_commit(upstream)
    found = await check_for_update(here)
    (here.path / "a.txt").write_text("mine\n")
    with pytest.raises(ConfigError, match="has local changes"):
        await update(here, found)
    assert (here.path / "a.txt").read_text() == "mine\n"
    git(here.path, "commit", "-a", "-m", "mine")
    with pytest.raises(ConfigError, match="merge or rebase your own commits yourself"):
        await update(here, found)
    assert (here.path / "a.txt").read_text() == "mine\n"


async def test_a_remote_that_is_gone_is_told(here: Installation, upstream: Path) -> None:
    git(here.path, "remote", "set-url", "origin", f"{upstream}-elsewhere")
    with pytest.raises(ConfigError, match="git fetch failed"):
        await check_for_update(here)


async def test_a_branch_without_a_remote_is_told(here: Installation) -> None:
    git(here.path, "checkout", "-b", "mine")
    with pytest.raises(ConfigError, match="set-upstream-to"):
        await check_for_update(here)


def test_where_it_runs_from_is_known() -> None:
    assert (installation().path / "src").is_dir() or installation().is_package
