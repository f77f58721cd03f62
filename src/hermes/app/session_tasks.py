"""Background tasks of an open session: inbox, processes, titles, reviews and upkeep."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Coroutine
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from hermes.core.commands import Say
from hermes.core.errors import Fenced, HermesError, JournalError
from hermes.core.prompt import Prompt
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.app.app import App

log = logging.getLogger(__name__)


def write_snapshots(app: App, session: Session) -> None:
    """Also write the session to a JSON file, if the settings say so."""
    if app.context.settings.sessions.write_json_snapshots:
        app.shared.json_snapshots.follow(session)


async def close_session(
    app: App, session: Session, *, soon: bool = False, suspend: bool = False
) -> None:
    """Close the session and notify its followers. For `soon` and `suspend`, see `Session.close`."""
    await session.close(soon=soon, suspend=suspend)
    await app.shared.on_session_closed(session.id)
    await app.hooks.on_session_closed(session.id)
    await app.plugins.on_session_closed(session.id)


async def watch_inbox(app: App, session: Session) -> None:
    """Execute the commands that other processes leave for the session."""
    from hermes.journal.change_watch import POLL_SECONDS, ChangeWatch

    clock, seen = app.context.world.clock, -1
    with closing(ChangeWatch(app.journal.path, clock)) as changes:
        while True:
            now = app.journal.data_version()
            if now == seen or await _read_inbox(session):
                seen = now
                await changes.wait()
            else:
                await clock.sleep(POLL_SECONDS)


async def _read_inbox(session: Session) -> bool:
    """Whether the inbox was read. If not, the caller tries again, so that a transient disk error
    loses no message."""
    try:
        await session.check_inbox()
    except Fenced:
        # The process that has the session now reads its inbox.
        return True
    except JournalError as error:
        log.warning("cannot read the inbox", extra={"error": str(error)})
        return False
    return True


async def watch_processes(session: Session) -> None:
    """Report events of background processes to the session."""
    async for notice in session.notices():
        await session.send(Say(text=notice.text, key=notice.key, origin=notice.origin))


async def write_title(app: App, session: Session) -> None:
    from hermes.models.side_tasks import TitleWriter

    titles = TitleWriter(app.models, app.context.settings, app.archive)
    if titles.is_enabled(session):
        await titles.follow(session, session.subscribe())


async def review_memory(app: App, session: Session) -> None:
    opened = session.transcript.opened
    if (
        not app.context.settings.memory.nudge_interval
        or opened is None
        or "memory" not in opened.tools
    ):
        return
    if not app.memory.scope(opened):
        return
    from hermes.memory.review import MemoryReview

    await MemoryReview(app.memory, session, opened).follow(session.subscribe())


async def pursue_goal(app: App, session: Session) -> None:
    """Continue the session after each turn while it has a goal."""
    from hermes.delegation.goals import GoalKeeper
    from hermes.models.side_model import SideModel

    async def ask(session: Session, prompt: Prompt) -> str:
        side_model = SideModel(app.models, app.context.settings, session.transcript, session.tell)
        return (await side_model.ask("goal", prompt, session.meter)).message.text

    await GoalKeeper(session, app.context.world, ask, app.archive.spent_usd).follow()


async def log_failure(task: Coroutine[Any, Any, None]) -> None:
    """Log a failed task without affecting others."""
    try:
        await task
    except Exception:
        log.exception("a session task failed")


async def upkeep(app: App, session: Session) -> None:
    await apply_retention(app, session)
    await remove_old_work(app)
    await run_curator(app, session)
    await to_thread(app.shared.images.remove_old_images)


async def apply_retention(app: App, session: Session) -> None:
    """Delete old sessions according to the settings, and report it."""
    if report := await app.archive.report_retention(app.context.settings.sessions.retention):
        session.tell(report)


async def remove_old_work(app: App) -> None:
    """Remove what finished plans, child sessions and scripts left, once a day."""
    from hermes.homes.work_files import sweep_if_due

    context = app.context
    now, settings = context.world.clock.now(), context.settings.retention
    await sweep_if_due(context.home, settings, app.archive, now)


async def run_curator(app: App, session: Session) -> None:
    """Archive agent-written skills that are not used, and report it."""
    from hermes.skills.session_index import skills_folder
    from hermes.skills.usage import is_due

    settings, now = app.context.settings.curator, app.context.world.clock.now()
    folder = skills_folder(app.context.home)
    if not settings.enabled or not is_due(folder, now, settings.interval_hours):
        return
    others = [each for each in await app.archive.recent(limit=2) if each.id != session.id]
    if others and now - others[0].last_at < settings.min_idle_hours * 3600:
        return
    moves = await to_thread(app.skills().curator().run)
    archived = [move.name for move in moves if move.to == "archived"]
    if archived:
        session.tell(
            f"Unused skills were archived: {', '.join(archived)} (`hermes curator restore`)."
        )
    if settings.consolidate:
        await _consolidate(app, session)


async def _consolidate(app: App, session: Session) -> None:
    """Failures are not reported, because the user did not ask for this work."""
    from hermes.skills.consolidation import Consolidation

    with suppress(HermesError):
        for merged in await Consolidation(
            app.models, app.context.settings, app.skills(), session
        ).run():
            names = ", ".join(merged.absorbed)
            session.tell(f"The skill {merged.into} replaces {names}.")
