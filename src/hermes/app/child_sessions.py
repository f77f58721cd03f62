"""Opens and closes child sessions for `delegation`, with what they inherit from their parents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes.codec.json import encode
from hermes.codec.tokens import tokens_of_size
from hermes.config.run_context import RunContext
from hermes.core.commands import Tune
from hermes.core.session import Session
from hermes.core.session_deps import SessionDeps
from hermes.core.session_request import SessionRequest
from hermes.delegation.child_policy import ChildPolicy
from hermes.delegation.host import ChildOpening, ParentFacts
from hermes.journal.journal import SqliteJournal
from hermes.tools.toolbox import SEARCHING, wanted_names

if TYPE_CHECKING:
    from hermes.app.app import App

# A question of a child session waits for the answer that its parent gets.
QUESTION_SECONDS = 86_400.0


class ChildSessions:
    """Implements `hermes.delegation.host.ChildHost`."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def context(self) -> RunContext:
        return self._app.context

    @property
    def journal(self) -> SqliteJournal:
        return self._app.journal

    def find_session(self, session_id: str) -> Session | None:
        return self._app.find_session(session_id)

    def parent_facts(self, owner: Session) -> ParentFacts:
        request, opened = self._app.request_of(owner.id), owner.transcript.opened
        assert opened is not None, "an open session has an opening event"
        settings, child = self.context.settings, request.child
        mode = settings.approvals.noninteractive_mode
        if request.source == "cron":
            mode = settings.approvals.cron_mode
        findable = wanted_names(settings, platform=request.platform)
        if child is not None:
            findable = child.findable
        found = self._app.tools.filter_known(findable) if SEARCHING[0] in opened.tools else ()
        return ParentFacts(
            tools=tuple(dict.fromkeys((*opened.tools, *found))),
            findable=findable,
            finds_added=SEARCHING[0] in opened.tools and bool(self._app.tools.added),
            surface=child.surface if child else request.source,
            approved=child.approved if child else mode == "approve",
            window=self._app.models.window(owner.transcript.model, owner.transcript.provider),
        )

    async def child_model(self, owner: Session) -> tuple[str, str]:
        settings, transcript = self.context.settings.delegation, owner.transcript
        if not settings.model and not settings.provider:
            return transcript.model, transcript.provider
        provider = settings.provider or transcript.provider
        choice = await self._app.models.choose_explicit(provider, settings.model)
        return choice.model, choice.provider

    def tool_tokens(self, names: Iterable[str]) -> int:
        specs = self._app.tools.choose(tuple(names)).specs
        return sum(tokens_of_size(len(encode(spec))) for spec in specs)

    async def open_child(self, owner: Session, opening: ChildOpening) -> Session:
        parent, opened = self._app.request_of(owner.id), owner.transcript.opened
        assert opened is not None, "an open session has an opening event"

        def adapt(_session_id: str, deps: SessionDeps) -> None:
            deps.policy = ChildPolicy(deps.policy, owner.policy)
            deps.approval_seconds = QUESTION_SECONDS

        request = SessionRequest(
            source=opening.source,
            attended=opening.attended,
            platform=parent.platform,
            cwd=owner.workspace.cwd,
            principal=opened.principal,
            person=opened.person,
            session_id=opening.id if opening.is_new else "",
            resume="" if opening.is_new else opening.id,
            parent=owner.id,
            # A background task of a person has no turn of its owner; it has turns of its own.
            task=opened.task or owner.transcript.turn_id,
            context_files=False,
            child=opening.options,
        )
        session = await self._app.open(request, adapt=adapt)
        now = owner.transcript.tuned
        effort = opening.options.effort or now.effort
        tuned = Tune(effort=effort, tier=now.tier, mode=now.mode)
        if opening.is_new and tuned != Tune():
            await session.send(tuned)
        return session

    async def close_child(self, session: Session, *, suspend: bool = False) -> None:
        if self.find_session(session.id) is session:
            await self._app.close_session(session, suspend=suspend)
