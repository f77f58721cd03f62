"""What tools need from other rooms, made for one session when a tool first asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.events import SessionOpened
from hermes.core.turn import Furnish

if TYPE_CHECKING:
    from hermes.app.build import App


def furnishing(app: App, session_id: str, opened: SessionOpened) -> Furnish:
    """By the module of the kind, so that nothing is loaded that no tool has loaded already."""

    def furnish(kind: type) -> object:
        match kind.__module__:
            case "hermes.core.secret_store":
                return _secrets(app, session_id)
            case "hermes.images.tools":
                return app.imaging.drawer(session_id)
            case "hermes.memory.tools":
                return app.memory.desk(session_id, opened)
            case "hermes.memory.local.tools":
                return app.memory.modelling.local_desk(session_id, opened)
            case "hermes.memory.honcho.tools":
                return app.memory.modelling.honcho_desk(session_id, opened)
            case "hermes.mcp.hosting":
                return _hosting(app, session_id)
            case "hermes.plugins.tools":
                return kind(session_id)
            case "hermes.recall.tools":
                return _recall(app, session_id, opened)
            case "hermes.speech.provider":
                from hermes.plugins.speech_provider import speech_of

                return speech_of(app.run, app.plugged.services)
            case "hermes.web.provider":
                from hermes.plugins.web_provider import web_of

                return web_of(app.plugged.services)
            case "hermes.tools.terminal_output":
                return app.hooked.output(session_id)
            case "hermes.tools.discovery":
                return _directory(app, opened)
            case "hermes.skills.tools":
                from hermes.skills.library import session_skills

                return session_skills(
                    app.skills(opened.cwd),
                    session_id,
                    opened,
                    find_session=lambda: app.opened(session_id),
                    secrets=app.secret_store(session_id),
                )
            case _:
                return kind()

    return furnish


def _secrets(app: App, session_id: str) -> object:

    return app.secret_store(session_id)


def _hosting(app: App, session_id: str) -> object:
    from hermes.mcp.session_hosting import hosting_of
    from hermes.mcp.taint_watch import watch_of

    rules = app.tuned[session_id].rules
    watch = watch_of(rules, lambda: app.commons.suspects, app.secrecy.text)
    return hosting_of(app.run, app.models, lambda: app.session(session_id), watch)


def _recall(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.journal.index.search import SearchIndex
    from hermes.journal.index.source import JournalFile
    from hermes.policy.sources import strangers
    from hermes.recall.archive import Archive
    from hermes.recall.recap import Teller
    from hermes.recall.tools import Recall

    # Unlike `hermes sessions search`, a turn does not wait until old sessions are all taken in.
    index = SearchIndex(app.home.index, JournalFile(app.home.journal))
    archive = Archive(
        app.journal,
        index,
        session_id=session_id,
        principal=opened.principal,
        strangers=strangers,
    )
    summarize = app.settings.session_search.summarize

    def teller() -> Teller:
        # Few searches want a recap, and its models are not loaded for the others.
        from hermes.app.recap import teller_of

        return teller_of(app, session_id)

    return Recall(archive, app.world.clock, teller=teller, summarize=summarize)


def _directory(app: App, opened: SessionOpened) -> object:
    from hermes.tools.discovery import Directory
    from hermes.tools.toolbox import wanted_names

    names = wanted_names(app.settings, platform=opened.source)
    return Directory(lambda: app.tools.hidden(opened.tools, names))
