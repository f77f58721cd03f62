"""The services that tools of one session can ask for, each created on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.events import SessionOpened
from hermes.core.turn import ServiceRegistry

if TYPE_CHECKING:
    from hermes.app.app import App


def tool_services(app: App, session_id: str, opened: SessionOpened) -> ServiceRegistry:
    """Factories import their services, so that a session loads only what it uses."""
    return ServiceRegistry(
        lambda: {
            "hermes.core.secrets:SecretStore": lambda: app.secret_store(session_id),
            "hermes.images.tools:ImageService": lambda: app.shared.images.make_service(session_id),
            "hermes.memory.tools:MemoryToolService": lambda: app.memory.tool_service(
                session_id, opened
            ),
            "hermes.memory.local:UserModel": lambda: app.memory.user_model.local_tool_service(
                session_id, opened
            ),
            "hermes.memory.honcho.model:HonchoService": lambda: (
                app.memory.user_model.honcho_tool_service(session_id, opened)
            ),
            "hermes.mcp.calls:CallServices": lambda: _mcp_hosting(app, session_id),
            "hermes.plugins.surface:SessionId": lambda: _session_id(session_id),
            "hermes.recall.tools:RecallService": lambda: _recall(app, session_id, opened),
            "hermes.speech.tools:SpeechProviders": lambda: _speech(app),
            "hermes.web.tools:WebProviders": lambda: _web(app),
            "hermes.tools.terminal:TerminalOutput": lambda: app.hooks.output(session_id),
            "hermes.tools.discovery:ToolDirectory": lambda: _directory(app, opened),
            "hermes.skills.service:SkillService": lambda: _skills(app, session_id, opened),
        }
    )


def _session_id(session_id: str) -> object:
    from hermes.plugins.surface import SessionId

    return SessionId(session_id)


def _mcp_hosting(app: App, session_id: str) -> object:
    from hermes.mcp.session_hosting import call_services, file_watch

    rules = app.controls[session_id].rules
    watch = file_watch(rules, lambda: app.shared.suspects, app.run.redactor.text)
    return call_services(app.run, app.models, lambda: app.require_session(session_id), watch)


def _recall(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.journal.index.search import SearchIndex
    from hermes.journal.index.source import JournalFile
    from hermes.policy.sources import strangers
    from hermes.recall.archive import PastSessions, RecapModel
    from hermes.recall.tools import RecallService

    # Unlike `hermes sessions search`, a turn does not wait until all old sessions are indexed.
    index = SearchIndex(app.run.home.index, JournalFile(app.run.home.journal))
    archive = PastSessions(
        app.journal,
        index,
        session_id=session_id,
        principal=opened.principal,
        strangers=strangers,
    )
    summarize = app.run.settings.session_search.summarize

    def make_recap_model() -> RecapModel:
        # Loaded when a search requests a recap.
        from hermes.app.recap import recap_writer

        return recap_writer(app, session_id)

    return RecallService(
        archive, app.run.world.clock, make_recap_model=make_recap_model, summarize=summarize
    )


def _speech(app: App) -> object:
    from hermes.plugins.run_providers import speech_of

    return speech_of(app.run, app.plugins.services)


def _web(app: App) -> object:
    from hermes.plugins.run_providers import web_of

    return web_of(app.plugins.services)


def _directory(app: App, opened: SessionOpened) -> object:
    from hermes.tools.discovery import ToolDirectory
    from hermes.tools.toolbox import wanted_names

    names = wanted_names(app.run.settings, platform=opened.source)
    return ToolDirectory(lambda: app.tools.hidden(opened.tools, names))


def _skills(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.skills.library import session_skills

    return session_skills(
        app.skills(opened.cwd),
        session_id,
        opened,
        find_session=lambda: app.find_session(session_id),
    )
