"""Undo for an application: recorders for sessions, and the history of projects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.undo.history import CheckpointHistory
    from hermes.undo.limits import UndoLimits
    from hermes.undo.recorder import UndoRecorder


T = TypeVar("T")


class UndoService:
    """Nothing is imported or created before it is needed."""

    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._folder = run.home.root / "checkpoints"

    async def call(self, work: Callable[[CheckpointHistory], T]) -> T:
        """Let `work` use the history in a thread, because its methods block."""
        return await asyncio.to_thread(work, self._history())

    def _history(self) -> CheckpointHistory:
        from hermes.undo.history import CheckpointHistory
        from hermes.undo.store import CheckpointStore

        return CheckpointHistory(
            CheckpointStore(self._folder),
            world=self._run.world,
            limits=self._limits(),
        )

    def make_recorder(self, root: str, where: Callable[[], tuple[str, str]]) -> UndoRecorder:
        """For one session in one project; `where` returns session and turn."""
        from hermes.undo.recorder import UndoRecorder
        from hermes.undo.store import CheckpointStore

        settings = self._run.settings.checkpoints
        return UndoRecorder(
            CheckpointStore(self._folder),
            root,
            where=where,
            world=self._run.world,
            limits=self._limits(),
            prune_hours=settings.min_interval_hours if settings.auto_prune else 0,
        )

    def _limits(self) -> UndoLimits:
        from hermes.undo.limits import limits_of

        run = self._run
        return limits_of(run.settings.checkpoints, person=run.user_home, state=run.state_dir)
