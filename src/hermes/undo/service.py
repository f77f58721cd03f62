"""Undo for an application: recorders for sessions, and the history of projects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import convert, plain
from hermes.core.world import World
from hermes.undo.settings import CheckpointSettings

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.undo.history import Checkpoint, History, Status
    from hermes.undo.plan import Plan
    from hermes.undo.protection import Protection
    from hermes.undo.restore import Restored
    from hermes.undo.upkeep import Pruned


def undoing(run: RunContext) -> Undoing:
    settings = convert(CheckpointSettings, plain(run.settings.checkpoints))
    return Undoing(run.home.root, run.world, settings, person=run.user_home, state=run.state_dir)


class Undoing:
    """`folder` is the home of Hermes, which contains the store. Nothing is imported or created
    before it is needed."""

    def __init__(
        self, folder: Path, world: World, settings: CheckpointSettings, *, person: str, state: str
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
    ) -> Plan:
        history = self._history()
        return await asyncio.to_thread(
            lambda: history.plan(session, number=number, turn=turn, path=path, overwrite=overwrite)
        )

    async def carry_out(self, plan: Plan, *, session: str, whole: bool = True) -> Restored:
        history = self._history()
        return await asyncio.to_thread(
            lambda: history.carry_out(plan, session=session, whole=whole)
        )

    async def differences(self, plan: Plan, root: str) -> str:
        from hermes.undo.difference import differences
        from hermes.undo.store import Store

        return await asyncio.to_thread(differences, Store(self._folder), plan, root)

    async def status(self) -> Status:
        return await asyncio.to_thread(self._history().status)

    async def prune(self) -> Pruned:
        return await asyncio.to_thread(self._history().prune)

    async def clear(self) -> Pruned:
        return await asyncio.to_thread(self._history().clear)

    def _history(self) -> History:
        from hermes.undo.history import History
        from hermes.undo.store import Store

        return History(
            Store(self._folder),
            world=self._world,
            cover=self._settings.coverage(person=self._person, state=self._state),
            retention=self._settings.retention(),
        )

    def protection(self, root: str, where: Callable[[], tuple[str, str]]) -> Protection:
        """For one session in one project; `where` returns session and turn."""
        from hermes.undo.protection import Protection
        from hermes.undo.store import Store

        return Protection(
            Store(self._folder),
            root,
            where=where,
            world=self._world,
            cover=self._settings.coverage(person=self._person, state=self._state),
            retention=self._settings.retention(),
            prune_hours=self._settings.min_interval_hours if self._settings.auto_prune else 0,
        )
