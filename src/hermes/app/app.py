"""The composition root: builds the packages of a run from the settings, and opens sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from hermes.app.context_engine import join_plugins
from hermes.app.run_shared import RunShared
from hermes.app.session_builder import AdaptDeps, SessionBuilder
from hermes.app.session_controls import SessionControls
from hermes.app.session_tasks import (
    close_session,
    log_failure,
    pursue_goal,
    review_memory,
    upkeep,
    watch_inbox,
    watch_processes,
    write_snapshots,
    write_title,
)
from hermes.codec.values import replace
from hermes.config.load import Config
from hermes.config.logs import LogHandlers
from hermes.config.run_context import RunContext
from hermes.core.caps import Caps, StepBudget
from hermes.core.commands import Say
from hermes.core.events import Record
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.credentials.event_redactor import SecretEventRedactor
from hermes.credentials.redacting_provider import RedactionGuard
from hermes.credentials.redaction import SecretRedactor
from hermes.hooks.run_hooks import RunHooks
from hermes.journal.journal import SqliteJournal
from hermes.journal.leases import follow_remote
from hermes.mcp.run_servers import McpServers
from hermes.models.model_ref import ModelChoice
from hermes.models.models import Models
from hermes.tools.toolbox import SessionTools

if TYPE_CHECKING:
    from hermes.core.secrets import SecretStore
    from hermes.delegation.background import BackgroundChildren
    from hermes.journal.archive import SessionArchive
    from hermes.memory.service import MemoryService
    from hermes.replay.environment import ReplayEnvironment
    from hermes.skills.library import SkillLibrary


class App:
    """One process of Hermes: its packages and its open sessions."""

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
        redactor = redactor or SecretRedactor(config, env)
        self.context = RunContext(config, env=env, world=world, redactor=redactor)
        if replay is not None:
            self.context.offline = True
            self.context.user_home, self.context.state_dir = replay.user_home, replay.state_dir
        self.journal = replay.journal if replay else SqliteJournal(config.home.journal, world)
        self.models = Models(
            config,
            world,
            env=env,
            redact=RedactionGuard(redactor),
            is_secret=redactor.is_secret,
        )
        self.models.accounts.watch_secrets(redactor.watch)
        if replay is not None:
            self.models.resolver = replay.resolver(self.models.resolver)
        self.tools = replay.tools if replay else SessionTools()
        self.mcp = McpServers(self.context, self.tools)
        self.hooks = RunHooks(self.context, self.models, self.require_session)
        self.plugins = join_plugins(self)
        self.shared = RunShared(self, redactor)
        # The user controls of each open session, by session id.
        self.controls: dict[str, SessionControls] = {}
        self._open: dict[str, tuple[Session, list[asyncio.Task[None]]]] = {}
        self._requests: dict[str, SessionRequest] = {}
        self._builder = SessionBuilder(self, budget, replay)
        self._log_files = log_files

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, request: SessionRequest, *, adapt: AdaptDeps | None = None) -> Session:
        """Open or resume a session. Raises SessionBusy when another process has it open, or
        NotFound. A surface may replace dependencies with `adapt`, such as a stricter policy."""
        await self.mcp.offer_tools()
        await self.plugins.offer()
        self.shared.offer_images()
        self.shared.offer_cron()
        self.shared.offer_moa()
        self.shared.offer_web()
        adapt = adapt or (lambda _id, _deps: None)
        session_id = await self._requested_id(request)
        if session_id and not request.keep_id and not self.context.settings.compression.in_place:
            session_id = await self.archive.continue_compacted(session_id)
        session = await (
            self._builder.resume(session_id, request, adapt)
            if session_id
            else self._builder.open_new(request, adapt)
        )
        self._open[session.id] = (session, [])
        self._requests[session.id] = request
        write_snapshots(self, session)
        return session

    async def close_session(
        self, session: Session, *, soon: bool = False, suspend: bool = False
    ) -> None:
        """Stop the tasks of the session and release it. For `soon` and `suspend`, see
        `Session.close`."""
        _, tasks = self._open[session.id]
        self.shared.secret_stores.pop(session.id, None)
        self.controls.pop(session.id, None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.context.settings.memory.provider:
            await self.memory.detach(session.id)
        del self._open[session.id], self._requests[session.id]
        await close_session(self, session, soon=soon, suspend=suspend)
        await self._builder.leave_worktree(session.id)

    async def post_message(self, request: SessionRequest, say: Say) -> AsyncGenerator[Record]:
        """Leave a message, which needs a key, for a session that another process has open. The
        returned stream follows the turn that answers it; a stream that ends without a TurnEnded
        means that the other process is gone and the session can be opened."""
        session_id = await self._requested_id(request)
        say = replace(say, text=self.context.redactor.text(say.text))
        await self.journal.post(session_id, say, key=say.key)
        return follow_remote(self.journal, self.context.world.clock, session_id, say.key)

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
            pursue_goal(self, session),
            self.mcp.follow(session),
            *(work(self, session) for work in self.shared.session_tasks),
            self.models.learn_profile(session.transcript.model, session.transcript.provider),
        ):
            tasks.append(asyncio.ensure_future(log_failure(work)))

    def switch_back(self, session: Session, model: str, provider: str) -> None:
        """Switch back to this model after the next turn."""
        from hermes.models.saved_choice import switch_back

        work = switch_back(session, session.subscribe(), model, provider)
        self._open[session.id][1].append(asyncio.ensure_future(log_failure(work)))

    async def close(self) -> None:
        children = "background" in self.__dict__
        for session, _ in tuple(self._open.values()):
            # Closing a session stops the child sessions that it waits for.
            if not children or self.background.delegations.find(session.id) is None:
                await self.close_session(session)
        if children:
            await self.background.delegations.close()
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
            self.context,
            self.journal,
            self.models,
            find_session=self.require_session,
            providers=self.plugins.memory_providers,
            load_plugins=self.plugins.offer,
        )

    @cached_property
    def background(self) -> BackgroundChildren:
        """The child sessions of this process: those that report later, and in `delegations` all."""
        from hermes.app.child_sessions import ChildSessions
        from hermes.delegation.background import BackgroundChildren
        from hermes.delegation.delegations import Delegations

        return BackgroundChildren(Delegations(ChildSessions(self)))

    def request_of(self, session_id: str) -> SessionRequest:
        """The request that opened a session."""
        return self._requests[session_id]

    def skills(self, cwd: str = "") -> SkillLibrary:
        """The skills of this home, and of the project in `cwd` if it is trusted."""
        from hermes.skills.library import SkillLibrary

        return SkillLibrary(self.context, self.models.http, cwd)

    @property
    def archive(self) -> SessionArchive:
        """The past sessions of this home."""
        # Loaded on first use: most runs do not need it.
        from hermes.journal.archive import SessionArchive

        return SessionArchive(
            self.journal, self.context.home, SecretEventRedactor(self.shared.redactor, again=True)
        )

    @property
    def caps(self) -> Caps:
        """The current spending caps."""
        return self._builder.caps

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
            from hermes.config.environment import HomeVault
            from hermes.core.secrets import SecretStore

            store = SecretStore(HomeVault(self.context), self.shared.ask_secret)
            self.shared.secret_stores[session_id] = store
        return self.shared.secret_stores[session_id]

    def cwd(self, request: SessionRequest) -> str:
        """The folder in which a session starts."""
        return self.shared.start_folder(request.cwd)

    def announce_choice(self, choice: ModelChoice) -> None:
        """Report the chosen model once if it differs from the settings."""
        if choice.line:
            self.context.notices.append(choice.line)

    async def _requested_id(self, request: SessionRequest) -> str:
        """The id of the session to resume; "" for a new one."""
        name = request.resume or request.newest
        if name:
            found = await self.archive.find(name)
        elif request.newest is None:
            return ""
        else:
            found = await self.archive.newest(request.source)
        return found if request.keep_id else await self.archive.find_continuation(found)
