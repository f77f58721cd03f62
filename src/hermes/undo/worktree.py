"""Git worktrees for sessions: the project stays unchanged while the agent works."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import posixpath
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.child_environment import child_environment
from hermes.core.errors import UsageError
from hermes.core.world import World

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext

FOLDER = ".worktrees"
INCLUDE = ".worktreeinclude"
GIT_SECONDS = 60


class Worktree(Value):
    """A git worktree of its own for one session."""

    path: str  # where the session works
    branch: str
    repository: str  # where it came from


def make_worktree(cwd: str, world: World, env: Mapping[str, str]) -> Worktree:
    """Create a branch from the present commit in its own folder, with the untracked files that
    `.worktreeinclude` names. Raises UsageError outside a repository, or in one without a commit."""
    top = _git(cwd, env, "rev-parse", "--show-toplevel")
    if not top:
        raise UsageError(f"{cwd} is not in a git repository, so it cannot have a worktree.")
    commit = _git(top, env, "rev-parse", "--verify", "HEAD")
    if not commit:
        raise UsageError("This repository has no commit yet; make one, or leave out --worktree.")
    name = world.new_id("hermes", 8).replace("_", "-")
    path = posixpath.join(top, FOLDER, name)
    branch = f"hermes/{name}"
    # A `.gitignore` of its own hides the folder from `git status`; no file of the user changes.
    ignore = Path(top, FOLDER, ".gitignore")
    ignore.parent.mkdir(exist_ok=True)
    if not ignore.exists():
        ignore.write_text("*\n")
    if _run(top, env, "worktree", "add", "-q", "-b", branch, path, commit)[0]:
        raise UsageError(f"git cannot create a worktree in {path}; see `git worktree list`.")
    # Only what lies in the project is copied.
    for name in _read_included(top):
        source, target = Path(top, name), Path(path, name)
        if target.exists() or not source.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    return Worktree(path=path, branch=branch, repository=top)


def remove_worktree(worktree: Worktree, env: Mapping[str, str]) -> str:
    """Remove it when nothing would be lost: no uncommitted change, and no commit that exists
    nowhere else. Otherwise keep it. Return a message."""
    path, branch = worktree.path, worktree.branch
    if not Path(path).is_dir():
        return ""
    if _git(path, env, "status", "--porcelain", "--untracked-files=all"):
        return f"{path} has uncommitted changes and is kept ({branch})."
    alone = _git(path, env, "rev-list", "HEAD", "--not", f"--exclude={branch}", "--branches",
                 "--remotes", "--max-count=1")  # fmt: skip
    if alone:
        return f"{branch} has commits of its own; {path} is kept."
    if _run(worktree.repository, env, "worktree", "remove", "--force", path)[0]:
        return f"git cannot remove {path}; it is kept."
    _run(worktree.repository, env, "branch", "-qD", branch)
    folder = Path(worktree.repository, FOLDER)
    if folder.is_dir() and [each.name for each in folder.iterdir()] == [".gitignore"]:
        (folder / ".gitignore").unlink()
        folder.rmdir()
    return f"The worktree {branch} had nothing new and was removed."


def _read_included(top: str) -> Iterator[str]:
    """Return paths and patterns, one per line, as in a .gitignore."""
    try:
        lines = Path(top, INCLUDE).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        pattern = line.strip().strip("/")
        if not pattern or pattern.startswith("#"):
            continue
        if not any(sign in pattern for sign in "*?["):
            found = [posixpath.normpath(pattern)]
        elif "/" in pattern:
            found = [str(each.relative_to(top)) for each in Path(top).glob(pattern)]
        else:
            found = _anywhere(top, pattern)
        yield from (name for name in found if not name.startswith(("..", ".git/", FOLDER)))


def _anywhere(top: str, pattern: str) -> list[str]:
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in (".git", FOLDER, "node_modules")]
        for name in fnmatch.filter((*folders, *names), pattern):
            found.append(os.path.relpath(posixpath.join(folder, name), top))
    return sorted(found)


def _git(cwd: str, env: Mapping[str, str], *arguments: str) -> str:
    """Return the output of git, "" when it fails."""
    code, output = _run(cwd, env, *arguments)
    return output.strip() if code == 0 else ""


def _run(cwd: str, env: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of git."""
    argv = ("git", "-c", "core.hooksPath=/dev/null", *arguments)
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            text=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise UsageError("Worktrees need git, which is not installed.") from error
    except TimeoutExpired:
        return 1, ""
    return done.returncode, done.stdout


class SessionWorktrees:
    """The worktrees of one process, by session."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        # Without variables that point git to another repository.
        env = child_environment(run.env).items()
        self._env = {name: value for name, value in env if not name.startswith("GIT_")}
        self._made: dict[str, Worktree] = {}

    async def enter(self, session_id: str, cwd: str) -> str:
        """Return the folder to work in instead; raise UsageError."""
        if self._run.settings.terminal.backend != "local":
            raise UsageError("--worktree works only with the local backend; leave it out.")
        made = await asyncio.to_thread(make_worktree, cwd, self._run.world, self._env)
        self._made[session_id] = made
        self._run.notices.append(f"This session works in {made.path} on the branch {made.branch}.")
        return made.path

    async def leave(self, session_id: str) -> str:
        """Remove the worktree if nothing would be lost, else keep it; return a message."""
        made = self._made.pop(session_id, None)
        if made is None:
            return ""
        return await asyncio.to_thread(remove_worktree, made, self._env)
