"""The git worktrees of open sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes.config.child_environment import child_environment
from hermes.core.errors import UsageError
from hermes.undo.worktree import Worktree, make_worktree, remove_worktree

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext


class SessionWorktrees:
    """The worktrees of one process, by session."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._env = _git_environment(run.env)
        self._made: dict[str, Worktree] = {}

    async def enter(self, session_id: str, cwd: str) -> str:
        """Return the folder to work in instead; UsageError."""
        if self._run.settings.terminal.backend != "local":
            raise UsageError("--worktree works only with the local backend.")
        made = await asyncio.to_thread(make_worktree, cwd, self._run.world, self._env)
        self._made[session_id] = made
        self._run.notices.append(f"This session works in {made.path} on the branch {made.branch}.")
        return made.path

    async def leave(self, session_id: str) -> str:
        """Remove the worktree if nothing would be lost, else keep it; return a message."""
        made = self._made.pop(session_id, None)
        if made is None:
            return ""
        return (await asyncio.to_thread(remove_worktree, made, self._env)).words


def _git_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Remove variables that point git to another repository."""
    return {k: v for k, v in child_environment(env).items() if not k.startswith("GIT_")}
