"""The data of the status bar and the banner, and the display settings of a session."""

from __future__ import annotations

import asyncio

from hermes.app.build import App
from hermes.commands.language import load_language
from hermes.config.display_settings import DisplaySettings
from hermes.config.home import Home
from hermes.config.switches import env_flag
from hermes.core.errors import HermesError
from hermes.core.session import Session
from hermes.surfaces.cli.chat.banner import introduction
from hermes.surfaces.cli.chat.live import StatusBar
from hermes.surfaces.cli.chat.paint import Paint
from hermes.surfaces.cli.skins.find import find_skin


def update_status(
    app: App, session: Session, before: StatusBar | None, entered_at: float
) -> StatusBar:
    """The updated status. Slow lookups happen only when the model changes."""
    transcript, tuned = session.transcript, app.controls[session.id]
    status = before or StatusBar(started_at=entered_at)
    if status.model != transcript.model:
        status.model = transcript.model
        status.window = app.window(transcript.model, transcript.provider)
    status.used = transcript.last_prompt
    status.title = transcript.title
    status.yolo = tuned.mode == "off"
    status.cost = transcript.usage.cost if tuned.display.show_cost else None
    status.shown = tuned.display.status_bar
    status.compactions = len(transcript.compactions)
    return status


def session_banner(
    app: App, session: Session, paint: Paint, *, width: int, place: str, skills: int, compact: bool
) -> str:
    """The banner; empty with HERMES_QUIET."""
    if env_flag(app.env, "HERMES_QUIET"):
        return ""
    return introduction(
        session.transcript,
        asks=app.controls[session.id].mode != "off",
        paint=paint,
        width=width,
        place=place,
        skills=skills,
        compact=compact,
    )


async def skill_count(app: App, cwd: str) -> int:

    scanned = await asyncio.to_thread(app.skills(cwd).scan.scan)
    return len(scanned.entries)


def apply_display(paint: Paint, display: DisplaySettings, home: Home) -> str:
    """Apply the skin and the language; the problem, if any."""
    if display.language != paint.say.name:
        paint.say = load_language(display.language)
    if display.skin == paint.skin.name:
        return ""
    try:
        paint.apply_skin(find_skin(display.skin, home.root))
    except HermesError as error:
        return str(error)
    return ""
