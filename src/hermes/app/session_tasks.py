"""Side work of a session: it is written to a file too; where somebody stays it also hears of other
processes, gets a name, and what it should have remembered is looked for."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from hermes.core.commands import Say
from hermes.core.errors import Fenced, JournalError
from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.app.build import App

log = logging.getLogger(__name__)

INBOX_SECONDS = 0.25


def write_snapshots(app: App, session: Session) -> None:
    """Write the session to a file too, where the settings want that."""
    if app.settings.sessions.write_json_snapshots:
        app.shared.json_snapshots.follow(session)


async def close_session(app: App, session: Session, *, soon: bool = False) -> None:
    """The session ends here, and whoever follows it is told the last of it. `soon` is as for
    `Journal.release`."""
    await session.close(soon=soon)
    await app.shared.on_session_closed(session.id)
    await app.hooks.on_session_closed(session.id)
    await app.plugins.on_session_closed(session.id)


async def watch_inbox(app: App, session: Session) -> None:
    """Carry out what other processes leave for the session."""
    seen = -1
    while True:
        now = app.journal.data_version()
        if now != seen and await _read_inbox(session):
            seen = now
        await app.world.clock.sleep(INBOX_SECONDS)


async def _read_inbox(session: Session) -> bool:
    """Whether the inbox could be read; if not, it is tried again. What others leave must not lie
    there for ever because the disk failed once."""
    try:
        await session.check_inbox()
    except Fenced:
        # The process that has the session now reads its inbox.
        return True
    except JournalError as error:
        log.warning("the inbox could not be read", extra={"error": str(error)})
        return False
    return True


async def watch_processes(session: Session) -> None:
    """Tell the session what its background processes come to."""
    async for notice in session.notices():
        origin = f"process:{notice.process_id}"
        await session.send(Say(text=notice.text, key=notice.key, origin=origin))


async def write_title(app: App, session: Session) -> None:
    from hermes.models.title_writer import TitleWriter

    titles = TitleWriter(app.models, app.settings, app.archive)
    if titles.is_enabled(session):
        await titles.follow(session, session.subscribe())


async def review_memory(app: App, session: Session) -> None:
    opened = session.transcript.opened
    if not app.settings.memory.nudge_interval or opened is None or "memory" not in opened.tools:
        return
    if not app.memory.scope(opened):
        return
    from hermes.memory.review import MemoryReview

    await MemoryReview(app.memory, session, opened).follow(session.subscribe())


async def log_failure(work: Coroutine[Any, Any, None]) -> None:
    """A watcher that fails is told in the log and takes nothing else down."""
    try:
        await work
    except Exception:
        log.exception("a watcher stopped")
