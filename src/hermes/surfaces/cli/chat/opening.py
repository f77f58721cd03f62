"""From the options of a chat to a running conversation. Imports all that a session needs, so it
is loaded behind the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.app.start import start
from hermes.codec.values import replace
from hermes.core.session_request import Opening
from hermes.skills.library import with_skills
from hermes.surfaces.cli.chat.conversation import Conversation
from hermes.surfaces.cli.chat.desk import Desk
from hermes.surfaces.cli.chat.screen import Screen
from hermes.surfaces.cli.source import source_of


async def converse(options: Mapping[str, Any], desk: Desk, screen: Screen) -> str:
    """The words to part with, when the person has left."""
    before: Conversation | None = None
    opening = opening_of(options, attended=True)
    while True:
        async with start(options) as app:
            # Better told now than when the first words cannot be kept.
            app.home.folder(app.home.root)
            if options.get("skills") and before is None:
                opening = await with_skills(
                    app.skills(app.cwd(opening)), opening, options["skills"]
                )
            conversation = Conversation(app, desk, screen, opening, before)
            await conversation.run()
            if not conversation.reload.is_set():
                return "\n".join((conversation.farewell(), *app.parting)).strip()
        opening, before = _again(opening, conversation), conversation


def _again(opening: Opening, conversation: Conversation) -> Opening:
    """The same session as far as it has begun, else a new one."""
    session = conversation.session
    resume = session.id if session.transcript.turn_starts or session.transcript.title else ""
    return replace(opening, resume=resume, newest=None)


def opening_of(options: Mapping[str, Any], *, attended: bool) -> Opening:
    return Opening(
        source=source_of(options),
        attended=attended,
        platform="cli",
        resume=options.get("resume") or "",
        newest=options.get("newest"),
        rules=not options.get("ignore_rules"),
        worktree=bool(options.get("worktree")),
        tell_id=bool(options.get("tell_id")),
        stay=bool(options.get("stay")),
    )
