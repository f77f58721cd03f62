"""Undo for an application: recorders for sessions, and the history of projects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import convert, plain
from hermes.core.world import World
from hermes.undo.coverage import UndoSettings

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.undo.history import Checkpoint, CheckpointHistory, StoreStatus
    from hermes.undo.plan import RestorePlan
    from hermes.undo.recorder import UndoRecorder
    from hermes.undo.restore import RestoreResult
    from hermes.undo.retention import PruneResult


def make_undo_service(run: RunContext) -> UndoService:
    settings = convert(UndoSettings, plain(run.settings.checkpoints))
    return UndoService(
        run.home.root, run.world, settings, person=run.user_home, state=run.state_dir
    )


class UndoService:
    """`folder` is the home of Hermes, which contains the store. Nothing is imported or created
    before it is needed."""

    def __init__(
        self, folder: Path, world: World, settings: UndoSettings, *, person: str, state: str
    ) -> None:
        self._folder = folder / "checkpoints"
        self._world = world
        self._settings = settings
        self._person = person
        self._state = state

    async def session_of(self, folder: str) -> str:
        """Return the session that last changed files in the project of this folder."""
        return await asyncio.to_thread(self._history().session_of, folder)

    async def checkpoints(self, session: str) -> tuple[Checkpoint, ...]:
        return await asyncio.to_thread(self._history().checkpoints, session)

    async def plan(
        self,
        session: str,
        *,
        number: int = 0,
        turn: str = "",
        path: str = "",
        overwrite: bool = False,
    ) -> RestorePlan:
        history = self._history()
        return await asyncio.to_thread(
            lambda: history.plan(session, number=number, turn=turn, path=path, overwrite=overwrite)
        )

    async def restore(
        self, plan: RestorePlan, *, session: str, whole: bool = True
    ) -> RestoreResult:
        history = self._history()
        return await asyncio.to_thread(lambda: history.restore(plan, session=session, whole=whole))

    async def differences(self, plan: RestorePlan, root: str) -> str:
        from hermes.undo.plan import unified_diff
        from hermes.undo.store import CheckpointStore

        return await asyncio.to_thread(unified_diff, CheckpointStore(self._folder), plan, root)

    async def status(self) -> StoreStatus:
        return await asyncio.to_thread(self._history().status)

    async def prune(self) -> PruneResult:
        return await asyncio.to_thread(self._history().prune)

    async def clear(self) -> PruneResult:
        return await asyncio.to_thread(self._history().clear)

    def _history(self) -> CheckpointHistory:
        from hermes.undo.history import CheckpointHistory
        from hermes.undo.store import CheckpointStore

        return CheckpointHistory(
            CheckpointStore(self._folder),
            world=self._world,
            cover=self._settings.coverage(person=self._person, state=self._state),
            retention=self._settings.retention(),
        )

    def make_recorder(self, root: str, where: Callable[[], tuple[str, str]]) -> UndoRecorder:
        """For one session in one project; `where` returns session and turn."""
        from hermes.undo.recorder import UndoRecorder
        from hermes.undo.store import CheckpointStore

        return UndoRecorder(
            CheckpointStore(self._folder),
            root,
            where=where,
            world=self._world,
            cover=self._settings.coverage(person=self._person, state=self._state),
            retention=self._settings.retention(),
            prune_hours=self._settings.min_interval_hours if self._settings.auto_prune else 0,
        )
