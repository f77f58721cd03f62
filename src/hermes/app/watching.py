"""Side work of a session in which somebody stays: it gets a name, and what it should have
remembered is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.session import Session

if TYPE_CHECKING:
    from hermes.app.build import App


async def name(app: App, session: Session) -> None:
    from hermes.app.titles import Titles

    titles = Titles(app.models, app.settings, app.library)
    if titles.wanted(session):
        await titles.follow(session, session.subscribe())


async def review(app: App, session: Session) -> None:
    opened = session.transcript.opened
    if not app.settings.memory.nudge_interval or opened is None or "memory" not in opened.tools:
        return
    from hermes.app.reviewing import MemoryReview

    await MemoryReview(app, session, opened).follow(session.subscribe())
