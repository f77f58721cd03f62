"""A session in a worktree of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.core.errors import UsageError
from hermes.core.world import World
from hermes.undo.worktree import Worktree, make_worktree, remove_worktree
from tests.undo.project import git

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.txt").write_text("a\n")
    (root / ".gitignore").write_text(".env*\nlocal/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / ".env").write_text("KEY=1\n")
    (root / "local").mkdir()
    (root / "local" / "x").write_text("x\n")
    (root / ".worktreeinclude").write_text("# what a copy needs\n.env*\nlocal\n../outside\n")
    return root


def create(repository: Path) -> Worktree:
    return make_worktree(str(repository), World(), ENV)


def test_a_worktree_has_its_own_branch_and_the_files_that_are_asked_for(repository: Path) -> None:
    status = git(repository, "status", "--porcelain")
    worktree = create(repository)
    path = Path(worktree.path)
    assert path.parent == repository / ".worktrees"
    assert (path / "a.txt").read_text() == "a\n"
    assert (path / ".env").read_text() == "KEY=1\n"
    assert (path / "local" / "x").read_text() == "x\n"
    assert not Path(path.parent, "outside").exists()
    assert git(path, "branch", "--show-current").strip() == worktree.branch
    assert git(repository, "status", "--porcelain") == status


def test_a_worktree_without_anything_new_is_removed(repository: Path) -> None:
    worktree = create(repository)
    remove_worktree(worktree, ENV)
    assert not (repository / ".worktrees").exists()
    assert worktree.branch not in git(repository, "branch", "--list")


def test_uncommitted_work_keeps_a_worktree(repository: Path) -> None:
    worktree = create(repository)
    Path(worktree.path, "a.txt").write_text("changed\n")
    assert worktree.path in remove_worktree(worktree, ENV)
    assert Path(worktree.path, "a.txt").read_text() == "changed\n"


def test_a_commit_that_is_nowhere_else_keeps_a_worktree(repository: Path) -> None:
    worktree = create(repository)
    Path(worktree.path, "a.txt").write_text("changed\n")
    git(Path(worktree.path), "commit", "-qam", "two")
    assert "commits of its own" in remove_worktree(worktree, ENV)
    git(repository, "merge", "-q", worktree.branch)
    assert "was removed" in remove_worktree(worktree, ENV)
    assert not Path(worktree.path).exists()


def test_outside_a_repository_there_is_no_worktree(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in a git repository"):
        make_worktree(str(tmp_path), World(), ENV)
