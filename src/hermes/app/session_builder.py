"""Builds the dependencies of new and resumed sessions, and their connections to models."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from hermes.app.context_engine import context_engine, engine_deps, plugin_engines
from hermes.app.session_controls import SessionControls, restore_model
from hermes.app.session_environment import (
    build_workspace,
    connect_workspace,
    end_survivors,
    file_origins,
    follow_children,
    preflight,
    session_policy,
)
from hermes.app.tool_services import tool_services
from hermes.codec.values import replace
from hermes.context.persona import chosen_personality
from hermes.context.project_files import FolderContext
from hermes.context.prompting import prefill_messages, prompt_view
from hermes.context.system import join_layers
from hermes.core.caps import Caps, StepBudget
from hermes.core.effects import Ask, RunCommand
from hermes.core.errors import NotFound
from hermes.core.events import SessionOpened
from hermes.core.gate import Approver
from hermes.core.ports import Meter, Middleware, Provider, Workspace
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.core.session_deps import Connect, SessionDeps, TurnLimits
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.credentials.event_redactor import SecretEventRedactor
from hermes.memory.snapshots import recall_middleware, session_memory
from hermes.models.limits import SpendingLimits, limits_of
from hermes.models.model_ref import ModelChoice
from hermes.policy.rule_setup import track_taint
from hermes.tools.toolbox import wanted_names
from hermes.web.access import web_access
from hermes.workspaces.shell import is_remote_backend

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.replay.environment import ReplayEnvironment
    from hermes.undo.worktree import SessionWorktrees

AdaptDeps = Callable[[str, SessionDeps], None]


class SessionBuilder:
    """Builds new and resumed sessions. `budget` limits the steps of all turns. In a replay,
    `replay` replaces the environment."""

    def __init__(
        self, app: App, budget: StepBudget | None, replay: ReplayEnvironment | None
    ) -> None:
        self._app = app
        self._run = app.context
        self._budget = budget
        self._replay = replay
        self._spending = SpendingLimits(app.context.config, app.context.env)
        self._worktrees: SessionWorktrees | None = None

    @property
    def caps(self) -> Caps:
        """The current spending caps."""
        return self._spending.caps

    async def leave_worktree(self, session_id: str) -> None:
        """Remove the worktree of a closed session, or tell the user why it stays."""
        if self._worktrees and (notice := await self._worktrees.leave(session_id)):
            self._run.exit_notices.append(notice)

    async def open_new(self, request: SessionRequest, adapt: AdaptDeps) -> Session:
        self._run.config.refuse_invalid()
        await end_survivors(self._app)
        choice = await self._choose_model(request)
        session_id = request.session_id or self._run.world.new_session_id()
        request = replace(request, session_id=session_id)
        cwd, remote = await self._start_folder(session_id, request), None
        if is_remote_backend(self._run.settings.terminal):
            remote = await connect_workspace(self._workspace(session_id, cwd, request))
            cwd = remote.root
        memory = await session_memory(self._run, lambda: self._app.memory, request)
        text, tools = self._app.shared.session_prompt(request, choice, cwd, memory.text)
        self._run.notices += text.warnings
        parent = request.parent
        opened = SessionOpened(
            source=request.source,
            cwd=cwd,
            model=choice.model,
            provider=choice.provider,
            system=self._app.shared.intern(join_layers(text.layers)),
            tools=tools,
            principal=request.principal,
            person=request.person,
            parent=parent,
            # The job of a sub-session is that of its parent.
            job=request.job or (await self._app.archive.job_of(parent) if parent else ""),
            task=request.task,
            origins=(
                *file_origins(self._app, cwd, text.files),
                *memory.origins,
                *(request.child.origins if request.child else ()),
            ),
        )
        recorder = self._recorder(session_id, opening=opened)
        memory.guard(recorder)
        if not request.child and (personality := chosen_personality(self._run.settings)):
            recorder.note(personality)
            recorder.apply_pending()
        workspace = remote or self._workspace(session_id, self._root(opened), request)
        started = self._run.world.clock.now()
        deps = self._build_deps(session_id, opened, request, workspace, started=started)
        return self._session(session_id, deps, recorder, adapt)

    async def resume(self, session_id: str, request: SessionRequest, adapt: AdaptDeps) -> Session:
        self._run.config.refuse_invalid()
        lease = await self._app.journal.acquire(session_id)
        await end_survivors(self._app)
        records = await self._app.journal.read(session_id)
        transcript = fold(records)
        opened = transcript.opened
        if opened is None:
            await self._app.journal.release(lease)
            raise NotFound(f"Session {session_id} has no first record; start a new session.")
        recorder = self._recorder(session_id, lease=lease, transcript=transcript)
        root = self._app.cwd(request) if request.stay else self._root(opened)
        workspace = await connect_workspace(self._workspace(session_id, root, request))
        deps = self._build_deps(
            session_id,
            opened,
            request,
            workspace,
            started=records[0].at,
            after=records[-1].n,
            has_hook_text=bool(transcript.hook_text),
        )
        self._app.controls[session_id].restore(transcript.tuned)
        session = self._session(session_id, deps, recorder, adapt)
        if request.child is None:
            await restore_model(self._app, session, transcript)
        return session

    async def _choose_model(self, request: SessionRequest) -> ModelChoice:
        if request.child is not None:
            model, provider = request.child.model, request.child.provider
            window = self._app.models.window(model, provider)
            return ModelChoice(model=model, provider=provider, window=window)
        choice = await self._app.models.choose()
        self._app.announce_choice(choice)
        return choice

    def _recorder(self, session_id: str, **options: Any) -> Recorder:
        options["redactor"] = SecretEventRedactor(self._app.shared.redactor)
        make = Recorder if self._replay is None else self._replay.recorder
        return make(self._app.journal, session_id, self._run.world, **options)

    async def _start_folder(self, session_id: str, request: SessionRequest) -> str:
        if not request.worktree:
            return self._app.cwd(request)
        from hermes.undo.worktree import SessionWorktrees

        self._worktrees = self._worktrees or SessionWorktrees(self._run)
        return await self._worktrees.enter(session_id, self._app.cwd(request))

    def _build_deps(
        self,
        session_id: str,
        opened: SessionOpened,
        request: SessionRequest,
        workspace: Workspace,
        *,
        started: float,
        after: int = 0,
        has_hook_text: bool = False,
    ) -> SessionDeps:
        names = wanted_names(self._run.settings, platform=request.platform)
        if request.child is not None:
            names = request.child.findable
        tools = self._app.tools.choose(opened.tools, names)
        policy = session_policy(self._app, session_id, workspace, request, started)
        controls = self._app.controls[session_id] = SessionControls(self._run.settings, policy)
        view = prompt_view(
            tools.specs,
            self._run.settings,
            source=opened.source,
            first=prefill_messages(self._run),
        )
        connect, middleware = session_provider(
            self._app,
            session_id,
            opened,
            request,
            workspace,
            after=after,
            has_hook_text=has_hook_text or self._replay is not None,
        )
        deps = SessionDeps(
            journal=self._app.journal,
            connect=connect,
            middleware=middleware,
            hooks=partial(self._app.hooks.of, workspace),
            budgeting=lambda: self._spending.of(opened),
            view=controls.wrap_view(view),
            toolbox=tools,
            workspace=workspace,
            policy=policy,
            world=self._run.world,
            attended=request.attended,
            budget=self._budget,
            approval_seconds=self._run.settings.approvals.timeout,
            services=tool_services(self._app, session_id, opened, names),
            web=web_access(self._run, policy),
            approver=self._approver(session_id),
            preflight=partial(preflight, workspace),
            engine=context_engine(self._app, session_id, opened, memory=request.context_files),
            remark=FolderContext(self._run, workspace, policy, opened)
            if request.context_files and not request.only_memory
            else None,
            tune=controls.apply,
        )
        if self._replay is None:
            return deps
        return self._replay.adapt(deps, engine_deps(self._app, session_id, opened))

    def _approver(self, session_id: str) -> Approver:
        """Approves simple commands with a model while the approval mode is "smart"."""

        async def approve(effect: RunCommand, ask: Ask) -> bool:
            if self._replay is not None:
                return self._replay.approved_by_model()
            from hermes.models.side_tasks import ModelApprover

            session = self._app.require_session(session_id)
            approver = ModelApprover(self._app.models, self._run.settings, session)
            return await approver.approves(effect, ask)

        return approve

    def _session(
        self, session_id: str, deps: SessionDeps, recorder: Recorder, adapt: AdaptDeps
    ) -> Session:
        adapt(session_id, deps)
        policy = self._app.controls[session_id].policy
        track_taint(self._run, session_id, policy, self._app.shared.taint, deps)
        if self._replay is None:
            follow_children(self._app, session_id, deps)
        return Session(deps, recorder)

    def _root(self, opened: SessionOpened) -> str:
        if self._replay is not None:
            return self._replay.root(opened)
        return self._app.shared.root(opened.cwd)

    def _workspace(self, session_id: str, root: str, request: SessionRequest) -> Workspace:
        if self._replay is not None:
            return self._replay.workspace(session_id, root)
        return build_workspace(self._app, session_id, root, request)


def session_provider(
    app: App,
    session_id: str,
    opened: SessionOpened,
    request: SessionRequest,
    workspace: Workspace,
    *,
    after: int,
    has_hook_text: bool,
) -> tuple[Connect, tuple[Middleware | None, ...]]:
    """See `SessionDeps`. The recording, if there is one, starts after `after` records."""
    engines, recorder = plugin_engines(app), None
    if app.context.settings.sessions.record and not app.context.offline:
        from hermes.replay.collection import ModelCallRecorder

        recorder = ModelCallRecorder(app.context, app.models, session_id, request, workspace, after)

    def connect(model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
        meter = app.hooks.wrap_meter(session_id, meter)
        tier = app.controls[session_id].chosen_tier
        connected, window = app.models.connect(model, provider, meter, tier=tier)
        if recorder is not None:
            recorder.record_model(model, provider, tier)
        if engines is not None:
            engines.update_model(session_id, model, provider, window)
        limits = limits_of(app.context.settings, window)
        if opened.source == "cron" and (most := app.context.settings.cron.max_turns):
            limits = replace(limits, max_steps=most)
        if request.child is not None:
            limits = replace(limits, max_steps=request.child.max_steps)
        return connected, limits

    # From the loop to the model: each entry wraps those below it. Below the last one is the
    # fallback chain (`Models.connect`), then the stack of each model (`build_pipeline`).
    middleware = (
        None
        if request.child
        else recall_middleware(app.context, lambda: app.memory, session_id, opened),
        app.hooks.middleware(session_id, has_text=has_hook_text),
        engines.middleware(session_id) if engines else None,
        recorder.middleware if recorder else None,
    )
    return connect, middleware
