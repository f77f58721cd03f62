"""What is put in order beside a session that stays open: old sessions, unused skills, pictures."""

from __future__ import annotations

from asyncio import to_thread
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.app.build import App


async def upkeep(app: App, session: Session) -> None:
    await apply_retention(app, session)
    await run_curator(app, session)
    await to_thread(app.images.remove_old_images)


async def apply_retention(app: App, session: Session) -> None:
    """Old sessions go as the settings say, and never without a word."""
    if words := await app.archive.report_retention(app.settings.sessions.retention):
        session.tell(words)


async def run_curator(app: App, session: Session) -> None:
    """Skills of the agent's own that nobody uses are archived, and that is said."""
    from hermes.skills.session_index import skills_folder
    from hermes.skills.usage import is_due

    settings, now = app.settings.curator, app.world.clock.now()
    folder = skills_folder(app.home)
    if not settings.enabled or not is_due(folder, now, settings.interval_hours):
        return
    others = [each for each in await app.archive.recent(limit=2) if each.id != session.id]
    if others and now - others[0].last_at < settings.min_idle_hours * 3600:
        return
    # Once a week at most.

    moves = await to_thread(app.skills().curator().run)
    gone = [move.name for move in moves if move.to == "archived"]
    if gone:
        session.tell(f"Unused skills were archived: {', '.join(gone)} (`hermes curator restore`).")
    if settings.consolidate:
        await _consolidate(app, session)


async def _consolidate(app: App, session: Session) -> None:
    """Nobody asked for it now, so nobody is told that it did not work."""
    from hermes.skills.consolidation import Consolidation

    with suppress(HermesError):
        for merged in await Consolidation(app.models, app.settings, app.skills(), session).run():
            names = ", ".join(merged.absorbed)
            session.tell(f"The skill {merged.into} takes the place of {names}.")
