"""The services that tools of one session can ask for, each created on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import JsonObject
from hermes.core.events import SessionOpened
from hermes.core.prompt import Prompt
from hermes.core.session_deps import ServiceRegistry
from hermes.core.tools import Tool

if TYPE_CHECKING:
    from hermes.app.app import App


def tool_services(
    app: App, session_id: str, opened: SessionOpened, findable: tuple[str, ...]
) -> ServiceRegistry:
    """Return the services by class. Factories import their services, so that a session loads only
    what it uses. `findable` are the tools that the tool search may find."""
    return ServiceRegistry(
        lambda: {
            "hermes.core.secrets:SecretStore": lambda: app.secret_store(session_id),
            "hermes.code_execution.tools:CodeExecution": lambda: _code_execution(
                app, opened, findable
            ),
            "hermes.cron.tools:CronToolService": lambda: _cron(app, session_id, opened),
            "hermes.delegation.tools:DelegationService": lambda: _delegation(app, session_id),
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
            "hermes.moa.tools:MoaService": lambda: _moa(app, session_id),
            "hermes.plans.tools:PlanningService": lambda: _planning(
                app, session_id, opened, findable
            ),
            "hermes.plugins.surface:SessionId": lambda: _session_id(session_id),
            "hermes.recall.tools:RecallService": lambda: _recall(app, session_id, opened),
            "hermes.speech.tools:SpeechProviders": lambda: _speech(app),
            "hermes.web.provider:WebProviders": lambda: _web(app, session_id),
            "hermes.tools.terminal:TerminalOutput": lambda: app.hooks.output(session_id),
            "hermes.tools.discovery:ToolDirectory": lambda: _directory(app, opened, findable),
            "hermes.skills.service:SkillService": lambda: _skills(app, session_id, opened),
        }
    )


def _cron(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.cron.record import Actor
    from hermes.cron.service import CronService
    from hermes.cron.tools import CronToolService

    actor = Actor(
        by="agent",
        principal=opened.principal,
        person=opened.person,
        origin=app.shared.job_origin(session_id),
    )
    return CronToolService(CronService(app.context, app.journal), actor)


def _moa(app: App, session_id: str) -> object:
    from hermes.moa.service import SessionMixture
    from hermes.moa.tools import MoaService

    mixture = SessionMixture(app.context, app.models, lambda: app.require_session(session_id))

    async def answer(question: str, report: Callable[[str], None]) -> JsonObject:
        return (await mixture.answer(question, report=report)).to_json()

    return MoaService(answer)


def _code_execution(app: App, opened: SessionOpened, findable: tuple[str, ...]) -> object:
    from hermes.code_execution.tools import CALLABLE, CodeExecution, CodeLimits

    settings = app.context.settings.code_execution
    added = {entry.spec.name for entry in app.tools.added}
    names = {*opened.tools, *findable, *added} & {*CALLABLE, *settings.extra_tools}
    tools = (app.tools.find(name) for name in sorted(names))
    limits = CodeLimits(
        timeout=settings.timeout,
        max_tool_calls=settings.max_tool_calls,
        max_output_bytes=settings.max_output_bytes,
    )
    return CodeExecution((tool.spec for tool in tools if tool is not None), limits)


def _planning(
    app: App, session_id: str, opened: SessionOpened, findable: tuple[str, ...]
) -> object:
    from hermes.plans.session_planning import make_planning_service

    def tools() -> tuple[Tool, ...]:
        added = (entry.spec.name for entry in app.tools.added)
        names = dict.fromkeys((*opened.tools, *findable, *added))
        return tuple(found for name in names if (found := app.tools.find(name)) is not None)

    return make_planning_service(
        app.context, app.models, tools, lambda: app.require_session(session_id)
    )


def _delegation(app: App, session_id: str) -> object:
    from hermes.delegation.tools import DelegationService

    return DelegationService(app.background, session_id)


def _session_id(session_id: str) -> object:
    from hermes.plugins.surface import SessionId

    return SessionId(session_id)


def _mcp_hosting(app: App, session_id: str) -> object:
    from hermes.mcp.session_hosting import call_services, file_watch

    policy = app.controls[session_id].policy
    watch = file_watch(policy, lambda: app.shared.taint, app.context.redactor.text)
    return call_services(app.context, app.models, lambda: app.require_session(session_id), watch)


def _recall(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.journal.index.search import SearchIndex
    from hermes.journal.index.source import JournalFile
    from hermes.policy.sources import foreign_origins
    from hermes.recall.archive import MOST_SHOWN, PastSessions, RecapModel
    from hermes.recall.tools import RecallService

    # Unlike `hermes sessions search`, a turn does not wait until all old sessions are indexed.
    index = SearchIndex(app.context.home.index, JournalFile(app.context.home.journal))
    archive = PastSessions(
        app.journal,
        index,
        session_id=session_id,
        principal=opened.principal,
        untrusted_origins=foreign_origins,
    )
    summarize = app.context.settings.session_search.summarize

    def make_recap_model() -> RecapModel:
        """Each search gets a new recap model, because the session's model may change."""
        from hermes.models.side_model import SideModel  # loaded when a search requests a recap

        session = app.require_session(session_id)
        transcript = session.transcript
        side_model = SideModel(app.models, app.context.settings, transcript, session.tell)

        async def ask(prompt: Prompt) -> str:
            reply = await side_model.ask("session_search", prompt, session.meter)
            return reply.message.text

        window = app.models.window(transcript.model, transcript.provider)
        return RecapModel(ask=ask, most_chars=min(MOST_SHOWN, window // 2 * CHARS_PER_TOKEN))

    return RecallService(
        archive, app.context.world.clock, make_recap_model=make_recap_model, summarize=summarize
    )


def _speech(app: App) -> object:
    from hermes.plugins.run_providers import speech_of

    return speech_of(app.context, app.plugins.services)


def _web(app: App, session_id: str) -> object:
    providers = app.shared.web_providers()
    if app.context.settings.web.extract_summarize:
        from hermes.models.side_model import SideModel
        from hermes.web.summaries import PageSummaries

        async def ask(prompt: Prompt) -> str:
            session = app.require_session(session_id)
            side_model = SideModel(
                app.models, app.context.settings, session.transcript, session.tell
            )
            return (await side_model.ask("web_extract", prompt, session.meter)).message.text

        providers.summaries = PageSummaries(ask)
    return providers


def _directory(app: App, opened: SessionOpened, findable: tuple[str, ...]) -> object:
    from hermes.tools.discovery import ToolDirectory

    return ToolDirectory(lambda: app.tools.hidden(opened.tools, findable))


def _skills(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.skills.library import session_skills

    return session_skills(
        app.skills(opened.cwd),
        session_id,
        opened,
        find_session=lambda: app.find_session(session_id),
    )
