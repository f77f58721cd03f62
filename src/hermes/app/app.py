"""The composition root: builds the packages of a run from the settings, and opens sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hermes.app.context_engine import (
    context_engine,
    engine_deps,
    join_plugins,
    select_context,
)
from hermes.app.run_shared import RunShared
from hermes.app.session_controls import SessionControls, resume_model
from hermes.app.session_environment import (
    build_workspace,
    connect_workspace,
    preflight,
    session_rules,
)
from hermes.app.session_tasks import (
    close_session,
    log_failure,
    review_memory,
    upkeep,
    watch_inbox,
    watch_processes,
    write_snapshots,
    write_title,
)
from hermes.app.tool_services import tool_services
from hermes.codec.values import replace
from hermes.config.load import Config
from hermes.config.logs import LogHandlers
from hermes.config.run_context import RunContext
from hermes.context.file_scan import nearby_files
from hermes.context.prompting import chosen_personality, prefill_messages, prompt_view
from hermes.context.system import join_layers
from hermes.core.caps import Caps, StepBudget
from hermes.core.commands import Say
from hermes.core.effects import Ask, RunCommand
from hermes.core.errors import NotFound
from hermes.core.events import Record, SessionOpened
from hermes.core.gate import Judge
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.transcript import fold
from hermes.core.turn import SessionDeps, TurnLimits
from hermes.core.world import World
from hermes.credentials.event_redactor import SecretEventRedactor
from hermes.credentials.redacting_provider import RedactionGuard
from hermes.credentials.redaction import SecretRedactor
from hermes.hooks.run_hooks import RunHooks
from hermes.images.service import ImageGeneration
from hermes.journal.journal import SqliteJournal
from hermes.mcp.run_servers import McpServers
from hermes.memory.snapshots import session_memory, wrap_connect
from hermes.models.limits import SpendingLimits, TieredConnect, limits_of
from hermes.models.model_ref import ModelChoice
from hermes.models.models import Models
from hermes.policy.taint.tracking import track_taint
from hermes.tools.toolbox import SessionTools, wanted_names
from hermes.web.access import web_access
from hermes.workspaces.shell import is_remote_backend

if TYPE_CHECKING:
    from hermes.core.secrets import SecretStore
    from hermes.journal.archive import SessionArchive
    from hermes.memory.service import MemoryService
    from hermes.replay.environment import ReplayEnvironment
    from hermes.skills.library import SkillLibrary
    from hermes.undo.worktree import SessionWorktrees

AdaptDeps = Callable[[str, SessionDeps], None]
SessionTask = Callable[["App", Session], Coroutine[Any, Any, None]]


class App:
    """One run of Hermes: its packages, and its open sessions. `controls` are the user controls of
    each open session, by session id; `session_tasks` start with every interactive session."""

    def __init__(
        self,
        config: Config,
        *,
        env: Mapping[str, str],
        world: World,
        log_files: LogHandlers | None = None,
        budget: StepBudget | None = None,
        redactor: SecretRedactor | None = None,
        replay: ReplayEnvironment | None = None,
    ) -> None:
        self.redactor = redactor or SecretRedactor(config, env)
        self.run = RunContext(config, env=env, world=world, redactor=self.redactor)
        self._replay = replay
        if replay is not None:
            self.run.offline = True
            self.run.user_home, self.run.state_dir = replay.user_home, replay.state_dir
        self.journal = replay.journal if replay else SqliteJournal(config.home.journal, world)
        secret = self.redactor.is_secret
        self.models = Models(
            config, world, env=env, guard=RedactionGuard(self.redactor), is_secret=secret
        )
        self.models.accounts.watch_secrets(self.redactor.watch)
        if replay is not None:
            self.models.resolver = replay.resolver(self.models.resolver)
        self.tools = replay.tools if replay else SessionTools()
        self.mcp = McpServers(self.run, self.tools)
        self.hooks = RunHooks(self.run, self.models, self.require_session)
        self.images = ImageGeneration(self.run, self.models, self.tools, self.find_session)
        self.plugins = join_plugins(self)
        self.shared = RunShared(self)
        self.session_tasks: list[SessionTask] = []
        self.controls: dict[str, SessionControls] = {}
        self._open: dict[str, tuple[Session, list[asyncio.Task[None]]]] = {}
        self._log_files = log_files
        self._budget = budget
        self._budgets = SpendingLimits(config, env)
        self._worktrees: SessionWorktrees | None = None

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self, request: SessionRequest, *, adapt: AdaptDeps | None = None) -> Session:
        """Open or resume a session. Raises SessionBusy when another process has it open, or
        NotFound. A surface may replace dependencies with `adapt`, such as a stricter policy."""
        await self.mcp.offer_tools()
        await self.plugins.offer()
        self.shared.offer_images()
        adapt = adapt or (lambda _id, _deps: None)
        session_id = await self._requested_id(request)
        session = await (
            self._resume(session_id, request, adapt)
            if session_id
            else self._open_new(request, adapt)
        )
        self._open[session.id] = (session, [])
        write_snapshots(self, session)
        return session

    async def close_session(self, session: Session, *, soon: bool = False) -> None:
        """Stop the tasks of the session and release it; `soon` as for `Journal.release`."""
        _, tasks = self._open[session.id]
        self.shared.secret_stores.pop(session.id, None)
        self.controls.pop(session.id, None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.run.settings.memory.provider:
            await self.memory.detach(session.id)
        del self._open[session.id]
        await close_session(self, session, soon=soon)
        if self._worktrees and (notice := await self._worktrees.leave(session.id)):
            self.run.exit_notices.append(notice)

    async def post_message(self, request: SessionRequest, say: Say) -> AsyncGenerator[Record]:
        """Leave a message, which needs a key, for a session that another process has open. The
        returned stream follows the turn that answers it; if it ends without a TurnEnded, that
        process is gone and the session can be opened."""
        # Loaded only when another process has the session open.
        from hermes.journal.follow_remote import follow_remote

        session_id = await self._requested_id(request)
        say = replace(say, text=self.redactor.text(say.text))
        await self.journal.post(session_id, say, key=say.key)
        return follow_remote(self.journal, self.run.world.clock, session_id, say.key)

    def start_session_tasks(self, session: Session) -> None:
        """Start the background tasks of an interactive session: inbox, processes, titles, reviews
        and upkeep."""
        tasks = self._open[session.id][1]
        for work in (
            watch_inbox(self, session),
            watch_processes(session),
            upkeep(self, session),
            write_title(self, session),
            review_memory(self, session),
            self.mcp.follow(session),
            *(work(self, session) for work in self.session_tasks),
            self.models.learn_profile(session.transcript.model, session.transcript.provider),
        ):
            tasks.append(asyncio.ensure_future(log_failure(work)))

    def switch_back(self, session: Session, model: str, provider: str) -> None:
        """Return to this model after the next turn."""
        from hermes.models.saved_choice import switch_back

        work = switch_back(session, session.subscribe(), model, provider)
        self._open[session.id][1].append(asyncio.ensure_future(log_failure(work)))

    async def close(self) -> None:
        for session, _ in tuple(self._open.values()):
            await self.close_session(session)
        await self.hooks.close()
        await self.plugins.close()
        await self.mcp.close()
        await self.models.close()
        if "memory" in self.__dict__:
            self.memory.close()
        await self.journal.close()
        if self._log_files is not None:
            self._log_files.close()

    @cached_property
    def memory(self) -> MemoryService:
        """The memory that persists between sessions."""
        from hermes.memory.service import MemoryService

        return MemoryService(
            self.run,
            self.journal,
            self.models,
            find_session=self.require_session,
            providers=self.plugins.memory_providers,
            load_plugins=self.plugins.offer,
        )

    def skills(self, cwd: str = "") -> SkillLibrary:
        """The skills of this home, and of the project in `cwd` if it is trusted."""
        from hermes.skills.library import SkillLibrary

        return SkillLibrary(self.run, self.models.http, cwd)

    @property
    def archive(self) -> SessionArchive:
        """The past sessions of this home."""
        # Loaded on first use: most runs do not need it.
        from hermes.journal.archive import SessionArchive

        return SessionArchive(
            self.journal, self.run.home, SecretEventRedactor(self.redactor, again=True)
        )

    @property
    def caps(self) -> Caps:
        """The current spending caps."""
        return self._budgets.caps

    def window(self, model: str, provider: str) -> int:
        """The context window of the model in tokens."""
        return self.models.window(model, provider)

    def require_session(self, session_id: str) -> Session:
        """An open session of this run."""
        return self._open[session_id][0]

    def find_session(self, session_id: str) -> Session | None:
        """An open session of this run, or None."""
        entry = self._open.get(session_id)
        return entry[0] if entry else None

    def secret_store(self, session_id: str) -> SecretStore:
        """The secrets that commands of this session may use."""
        if session_id not in self.shared.secret_stores:
            from hermes.core.secrets import SecretStore
            from hermes.credentials.vault import HomeVault

            store = SecretStore(HomeVault(self.run), self.shared.ask_secret)
            self.shared.secret_stores[session_id] = store
        return self.shared.secret_stores[session_id]

    def cwd(self, request: SessionRequest) -> str:
        """The folder in which a session starts."""
        return self.shared.start_folder(request.cwd)

    def announce_choice(self, choice: ModelChoice) -> None:
        """Report the chosen model once if it differs from the settings."""
        if choice.line:
            self.run.notices.append(choice.line)

    async def _requested_id(self, request: SessionRequest) -> str:
        """The id of the session to resume; "" for a new one."""
        name = request.resume or request.newest
        if name:
            return await self.archive.find(name)
        return "" if request.newest is None else await self.archive.newest(request.source)

    async def _open_new(self, request: SessionRequest, adapt: AdaptDeps) -> Session:
        choice = await self.models.choose()
        self.announce_choice(choice)
        session_id = request.session_id or self.run.world.new_session_id()
        request = replace(request, session_id=session_id)
        cwd, remote = await self._start_folder(session_id, request), None
        if is_remote_backend(self.run.settings.terminal):
            remote = await connect_workspace(self._workspace(session_id, cwd, request))
            cwd = remote.root
        memory = await session_memory(self.memory, request)
        text, tools = self.shared.session_prompt(request, choice, cwd, memory.text)
        self.run.notices += text.warnings
        opened = SessionOpened(
            source=request.source,
            cwd=cwd,
            model=choice.model,
            provider=choice.provider,
            system=self.shared.intern(join_layers(text.layers)),
            tools=tools,
            principal=request.principal,
            person=request.person,
            parent=request.parent,
            job=request.job or await self._job_of(request.parent),
        )
        recorder = self._recorder(session_id, opening=opened)
        memory.guard(recorder)
        if personality := chosen_personality(self.run.settings):
            recorder.note(personality)
            recorder.apply_pending()
        workspace = remote or self._workspace(session_id, self._root(opened), request)
        started = self.run.world.clock.now()
        deps = self._build_deps(session_id, opened, request, workspace, started=started)
        adapt(session_id, deps)
        self._track_taint(session_id, deps)
        return Session(deps, recorder)

    async def _job_of(self, parent: str) -> str:
        """The job of a sub-session is that of its parent."""
        return await self.archive.job_of(parent) if parent else ""

    async def _resume(self, session_id: str, request: SessionRequest, adapt: AdaptDeps) -> Session:
        lease = await self.journal.acquire(session_id)
        records = await self.journal.read(session_id)
        transcript = fold(records)
        opened = transcript.opened
        if opened is None:
            await self.journal.release(lease)
            raise NotFound(f"Session {session_id} has no first record; start a new session.")
        recorder = self._recorder(session_id, lease=lease, transcript=transcript)
        root = self.cwd(request) if request.stay else self._root(opened)
        workspace = await connect_workspace(self._workspace(session_id, root, request))
        started, last = records[0].at, records[-1].n
        deps = self._build_deps(session_id, opened, request, workspace, started=started, after=last)
        self.controls[session_id].resume(transcript.tuned)
        adapt(session_id, deps)
        self._track_taint(session_id, deps)
        session = Session(deps, recorder)
        await resume_model(self, session, transcript)
        return session

    def _recorder(self, session_id: str, **options: Any) -> Recorder:
        options["redactor"] = SecretEventRedactor(self.redactor)
        make = Recorder if self._replay is None else self._replay.recorder
        return make(self.journal, session_id, self.run.world, **options)

    async def _start_folder(self, session_id: str, request: SessionRequest) -> str:
        if not request.worktree:
            return self.cwd(request)
        from hermes.undo.worktree import SessionWorktrees

        self._worktrees = self._worktrees or SessionWorktrees(self.run)
        return await self._worktrees.enter(session_id, self.cwd(request))

    def _build_deps(
        self,
        session_id: str,
        opened: SessionOpened,
        request: SessionRequest,
        workspace: Workspace,
        *,
        started: float,
        after: int = 0,
    ) -> SessionDeps:
        names = wanted_names(self.run.settings, platform=request.platform)
        tools = self.tools.choose(opened.tools, names)
        policy = session_rules(self, session_id, workspace, request, started)
        recorded = self._recorded_connect(session_id, request, workspace, after)
        controls = self.controls[session_id] = SessionControls(self.run.settings, policy)
        view = prompt_view(
            tools.specs, self.run.settings, source=opened.source, first=prefill_messages(self.run)
        )
        connect = select_context(self, session_id, controls.wrap_connect(recorded))
        with_hooks = self.hooks.wrap(session_id, connect)
        deps = SessionDeps(
            journal=self.journal,
            connect=wrap_connect(self.memory, session_id, opened, with_hooks),
            hooks=partial(self.hooks.of, workspace),
            budgeting=lambda: self._budgets.of(opened),
            view=controls.wrap_view(view),
            toolbox=tools,
            workspace=workspace,
            policy=policy,
            world=self.run.world,
            attended=request.attended,
            budget=self._budget,
            approval_seconds=self.run.settings.approvals.timeout,
            services=tool_services(self, session_id, opened),
            web=web_access(self.run, policy),
            judge=self._approver(session_id),
            preflight=partial(preflight, workspace),
            engine=context_engine(self, session_id, opened, rules=request.rules),
            remark=nearby_files(self.run, workspace, policy, opened) if request.rules else None,
            tune=controls.apply,
        )
        if self._replay is None:
            return deps
        return self._replay.adapt(deps, engine_deps(self, session_id, opened))

    def _approver(self, session_id: str) -> Judge:
        """Approves simple commands with a model while the approval mode is "smart"."""

        async def approve(effect: RunCommand, ask: Ask) -> bool:
            if self._replay is not None:
                return self._replay.approved_by_model()
            from hermes.models.side_tasks import ModelApprover

            session = self.require_session(session_id)
            return await ModelApprover(self.models, self.run.settings, session).approves(
                effect, ask
            )

        return approve

    def _track_taint(self, session_id: str, deps: SessionDeps) -> None:
        rules = self.controls[session_id].rules
        track_taint(self.run, session_id, rules, self.shared.suspects, deps)

    def _root(self, opened: SessionOpened) -> str:
        if self._replay is not None:
            return self._replay.root(opened)
        return self.shared.root(opened.cwd)

    def _recorded_connect(
        self, session_id: str, request: SessionRequest, workspace: Workspace, after: int
    ) -> TieredConnect:
        """Connects to models, through a recorder if sessions are recorded."""
        if self._replay is not None:
            return self._replay.connect(self._connect)
        if not self.run.settings.sessions.record:
            return self._connect
        from hermes.replay.collection import SessionRecorder

        return SessionRecorder(self.run, self.models, session_id, request, workspace, after).wrap(
            self._connect
        )

    def _connect(
        self, model: str, provider: str, meter: Meter, tier: str | None = None
    ) -> tuple[Provider, TurnLimits]:
        connected, window = self.models.connect(model, provider, meter, tier=tier)
        return connected, limits_of(self.run.settings, window)

    def _workspace(self, session_id: str, root: str, request: SessionRequest) -> Workspace:
        if self._replay is not None:
            return self._replay.workspace(session_id, root)
        return build_workspace(self, session_id, root, request)
