"""`hermes chat -q`: one turn; prints the answer and the session id."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.app.app import App
from hermes.app.start import start
from hermes.commands.input import attach_image
from hermes.config.environment import env_flag
from hermes.core.commands import Say
from hermes.core.events import TurnEnded
from hermes.core.recorder import Subscription
from hermes.core.session import Session
from hermes.skills.library import with_skills
from hermes.surfaces.cli.hook_consent import ask_before_session
from hermes.surfaces.cli.oneshot import CODES, TextPrinter, opening_of, stop_on_signal


def ask(options: Mapping[str, Any], text: str, pictures: tuple[Path, ...], *, quiet: bool) -> int:
    ask_before_session(options)
    return asyncio.run(_ask(start(options), options, text, pictures, quiet))


async def _ask(
    app: App, options: Mapping[str, Any], text: str, pictures: tuple[Path, ...], quiet: bool
) -> int:
    quiet = quiet or env_flag(app.run.env, "HERMES_QUIET")
    async with app:
        opening = opening_of(options, attended=False)
        if options.get("skills"):
            opening = await with_skills(app.skills(app.cwd(opening)), opening, options["skills"])
        session = await app.open(opening)
        images = [await attach_image(app, path) for path in pictures]
        if not quiet:
            for line in app.run.notices:
                print(line, file=sys.stderr)
        say = Say(text=text, images=tuple(images))
        verifies = app.run.settings.display.file_mutation_verifier
        ended = await _turn(session, say, verifies=verifies)
        if not quiet:
            print(f"session: {session.id}", file=sys.stderr)
    for line in app.run.exit_notices:
        print(line, file=sys.stderr)
    return CODES.get(ended.reason, 1) if ended else 1


async def _turn(session: Session, say: Say, *, verifies: bool) -> TurnEnded | None:
    printer, events = TextPrinter(), session.subscribe()
    printer.verifies = verifies
    reading = asyncio.create_task(_read(events, printer))
    stopping = asyncio.create_task(stop_on_signal(session))
    try:
        await session.send(say)
        await session.wait_until_idle()
    finally:
        stopping.cancel()
        events.close()
        await reading
    return printer.ended


async def _read(events: Subscription, printer: TextPrinter) -> None:
    async for record in events:
        printer.show(record)
