"""The composition root: settings in, rooms joined, sessions out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hermes.app import session_tasks as watching
from hermes.app.commons import Commons
from hermes.app.context_engine import EngineMaker, context_engine, means_of
from hermes.app.plugin_host import joined, selecting
from hermes.app.resume_model import follow_choice
from hermes.app.session_controls import Tuning
from hermes.app.session_rules import session_rules
from hermes.app.session_workspace import arrived, preflight, workspace_of
from hermes.app.tool_services import tool_services
from hermes.app.upkeep import upkeep
from hermes.codec.values import replace
from hermes.config.load import Config
from hermes.config.logs import Logging
from hermes.config.run_context import RunContext
from hermes.context.context_files import nearby
from hermes.context.prefill import prefilled
from hermes.context.prompting import chosen_personality, view_of
from hermes.context.system import join
from hermes.core.budget import Budget
from hermes.core.caps import Caps
from hermes.core.commands import Say
from hermes.core.effects import Ask, RunCommand
from hermes.core.errors import NotFound
from hermes.core.events import Record, SessionOpened
from hermes.core.gate import Judge
from hermes.core.parts import Parts
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.core.session_request import Opening
from hermes.core.transcript import fold
from hermes.core.turn import Limits
from hermes.core.world import World
from hermes.credentials.event_redactor import Veil
from hermes.credentials.redacting_provider import Guard
from hermes.credentials.redaction import Secrecy
from hermes.hooks.run_hooks import Hooked
from hermes.images.service import Imaging
from hermes.journal.journal import SqliteJournal
from hermes.mcp.run_servers import Foreign
from hermes.memory.snapshots import remembered, through
from hermes.models.budgets import Budgets
from hermes.models.choice import Choice
from hermes.models.limits import TieredConnect, limits_of
from hermes.models.models import Models
from hermes.policy.taint.tracking import witness
from hermes.skills.session_index import Looked
from hermes.tools.toolbox import Tools, wanted_names
from hermes.web.access import web_access
from hermes.workspaces.terminal_settings import is_far

if TYPE_CHECKING:
    from hermes.core.secret_store import AskSecret, SecretStore
    from hermes.journal.archive import Library
    from hermes.memory.provider import MemoryProvider
    from hermes.memory.service import Remembering
    from hermes.replay.environment import ReplayEnvironment
    from hermes.skills.library import Skilled
    from hermes.undo.worktrees import Worktrees

Arrange = Callable[[str, Parts], None]
Beside = Callable[["App", Session], Coroutine[Any, Any, None]]


class App:
    """One run of Hermes. `news` are lines that a surface should show once: what was chosen and
    what is wrong with the settings."""

    def __init__(
        self,
        config: Config,
        *,
        env: Mapping[str, str],
        world: World,
        log_files: Logging | None = None,
        budget: Budget | None = None,
        secrecy: Secrecy | None = None,
        replay: ReplayEnvironment | None = None,
    ) -> None:
        self.secrecy = secrecy or Secrecy(config, env)
        self.run = RunContext(config, env=env, world=world, redactor=self.secrecy)
        self.config = config
        self.settings = config.settings
        self.home = config.home
        self.world = world
        self.env = env
        self._replay = replay
        if replay is not None:
            self.run.offline = True
            self.run.user_home, self.run.state_dir = replay.user_home, replay.state_dir
        self.person = self.run.user_home
        self.state = self.run.state_dir
        self.news = self.run.notices
        self.parting = self.run.exit_notices
        self.journal = replay.journal if replay else SqliteJournal(config.home.journal, world)
        secret = self.secrecy.is_secret
        self.models = Models(config, world, env=env, guard=Guard(self.secrecy), is_secret=secret)
        self.models.accounts.tell_secrets(self.secrecy.watch)
        if replay is not None:
            self.models.resolver = replay.resolver(self.models.resolver)
        self.tools = replay.tools if replay else Tools()
        self.foreign = Foreign(self.run, self.tools)
        self.hooked = Hooked(self.run, self.models, self.session)
        self.imaging = Imaging(self.run, self.models, self.tools, self.opened)
        # What plugins bring, by name.
        self.engines: dict[str, EngineMaker] = {}
        self.memory_providers: dict[str, Callable[[], MemoryProvider]] = {}
        self.plugged = joined(self)
        self.commons = Commons(self)
        self.beside: list[Beside] = []
        # What must be put into a home is looked at once in a run.
        self.has_begun = False
        self.looked = Looked()
        # By session that is open here: what a person can set for it, and the secrets that its
        # commands may use; `ask_secret` asks a person for one unseen.
        self.tuned: dict[str, Tuning] = {}
        self.secret_stores: dict[str, SecretStore] = {}
        self.ask_secret: AskSecret | None = None
        self._open: dict[str, tuple[Session, list[asyncio.Task[None]]]] = {}
        self._log_files = log_files
        self._budget = budget
        self._budgets = Budgets(config, env)
        self._worktrees: Worktrees | None = None

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self, opening: Opening, *, arrange: Arrange | None = None) -> Session:
        """A session to talk to. SessionBusy when another process is in it, NotFound. A surface may
        `arrange` its parts anew: a policy that is stricter, files that are open elsewhere."""
        await self.foreign.offer()
        await self.plugged.offer()
        self.commons.offer_images()
        arrange = arrange or (lambda _id, _parts: None)
        session_id = await self._wanted(opening)
        session = await (
            self._resume(session_id, opening, arrange)
            if session_id
            else self._new(opening, arrange)
        )
        self._open[session.id] = (session, [])
        watching.mirror(self, session)
        return session

    async def leave(self, session: Session, *, soon: bool = False) -> None:
        """Stop what runs in the session and let go of it; `soon` as for `Journal.release`."""
        _, tasks = self._open[session.id]
        self.secret_stores.pop(session.id, None)
        self.tuned.pop(session.id, None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.settings.memory.provider:
            await self.memory.detach(session.id)
        del self._open[session.id]
        await watching.close(self, session, soon=soon)
        if self._worktrees and (words := await self._worktrees.leave(session.id)):
            self.parting.append(words)

    async def leave_word(self, opening: Opening, say: Say) -> AsyncGenerator[Record]:
        """For a session that another process is in: the message, which needs a key, is left there
        when this returns. What it returns follows the turn that answers; without a TurnEnded at
        the end, that process has gone and the session can be opened."""
        # Few runs meet another one, so the others do not pay for it.
        from hermes.journal.elsewhere import follow

        session_id = await self._wanted(opening)
        say = replace(say, text=self.secrecy.text(say.text))
        await self.journal.post(session_id, say, key=say.key)
        return follow(self.journal, self.world.clock, session_id, say.key)

    def attend(self, session: Session) -> None:
        """For surfaces that stay: carry out what other processes leave for the session, and
        tell it when its background processes end."""
        tasks = self._open[session.id][1]
        for work in (
            watching.inbox(self, session),
            watching.processes(session),
            upkeep(self, session),
            watching.name(self, session),
            watching.review(self, session),
            self.foreign.follow(session),
            *(work(self, session) for work in self.beside),
            self.models.acquaint(session.transcript.model, session.transcript.provider),
        ):
            tasks.append(asyncio.ensure_future(watching.quietly(work)))

    def switch_back(self, session: Session, model: str, provider: str) -> None:
        """Return to this model after the next turn."""
        from hermes.models.switching import switch_back

        work = switch_back(session, session.subscribe(), model, provider)
        self._open[session.id][1].append(asyncio.ensure_future(watching.quietly(work)))

    async def close(self) -> None:
        for session, _ in tuple(self._open.values()):
            await self.leave(session)
        await self.hooked.close()
        await self.plugged.close()
        await self.foreign.close()
        await self.models.close()
        if "memory" in self.__dict__:
            self.memory.close()
        await self.journal.close()
        if self._log_files is not None:
            self._log_files.close()

    @cached_property
    def memory(self) -> Remembering:
        """What is known from one session to the next."""
        from hermes.memory.service import Remembering

        return Remembering(
            self.run,
            self.journal,
            self.models,
            find_session=self.session,
            providers=self.memory_providers,
            load_plugins=self.plugged.offer,
        )

    def skills(self, cwd: str = "") -> Skilled:
        """The skills of this home, and of the project in `cwd` if it is trusted."""
        from hermes.skills.library import Skilled

        return Skilled(self.run, self.models.http, cwd)

    @property
    def library(self) -> Library:
        """The past sessions of this home."""
        # Most runs never look back, so they do not pay for it.
        from hermes.journal.archive import Library

        return Library(self.journal, self.home, Veil(self.secrecy, again=True))

    @property
    def caps(self) -> Caps:
        """What may be spent, as the settings say now."""
        return self._budgets.caps

    def window(self, model: str, provider: str) -> int:
        """How many tokens the model takes at once."""
        return self.models.window(model, provider)

    def session(self, session_id: str) -> Session:
        """One that is open here."""
        return self._open[session_id][0]

    def opened(self, session_id: str) -> Session | None:
        """One that may not be open yet, or not any more."""
        held = self._open.get(session_id)
        return held[0] if held else None

    def secret_store(self, session_id: str) -> SecretStore:
        """The secrets that commands of this session may use."""
        if session_id not in self.secret_stores:
            from hermes.core.secret_store import SecretStore
            from hermes.credentials.vault import HomeVault

            store = SecretStore(HomeVault(self.run), self.ask_secret)
            self.secret_stores[session_id] = store
        return self.secret_stores[session_id]

    def cwd(self, opening: Opening) -> str:
        """The folder that a session starts in."""
        return self.commons.start_folder(opening.cwd)

    def announce(self, choice: Choice) -> None:
        """Tell once what was chosen, where that is not what the settings say."""
        if choice.line:
            self.news.append(choice.line)

    async def _wanted(self, opening: Opening) -> str:
        """The id of the session to go on with, "" for a new one."""
        named = opening.resume or opening.newest
        if named:
            return await self.library.find(named)
        return "" if opening.newest is None else await self.library.newest(opening.source)

    async def _new(self, opening: Opening, arrange: Arrange) -> Session:
        choice = await self.models.choose()
        self.announce(choice)
        session_id = opening.session_id or self.world.new_session_id()
        opening = replace(opening, session_id=session_id)
        cwd, far = await self._own_folder(session_id, opening), None
        if is_far(self.settings.terminal):
            far = await arrived(self._workspace(session_id, cwd, opening))
            cwd = far.root
        memory = await remembered(self.memory, opening)
        text, tools = self.commons.beginning(opening, choice, cwd, memory.text)
        self.news += text.warnings
        opened = SessionOpened(
            source=opening.source,
            cwd=cwd,
            model=choice.model,
            provider=choice.provider,
            system=self.commons.same(join(text.layers)),
            tools=tools,
            principal=opening.principal,
            person=opening.person,
            parent=opening.parent,
            job=opening.job or await self._job_of(opening.parent),
        )
        recorder = self._recorder(session_id, opening=opened)
        memory.guard(recorder)
        if personality := chosen_personality(self.settings):
            recorder.note(personality)
            recorder.foresee()
        workspace = far or self._workspace(session_id, self._root(opened), opening)
        began = self.world.clock.now()
        parts = self._parts(session_id, opened, opening, workspace, began=began)
        arrange(session_id, parts)
        self._track_taint(session_id, parts)
        return Session(parts, recorder)

    async def _job_of(self, parent: str) -> str:
        """What a sub-session is a part of: the same as the session that it works for."""
        return await self.library.job_of(parent) if parent else ""

    async def _resume(self, session_id: str, opening: Opening, arrange: Arrange) -> Session:
        lease = await self.journal.acquire(session_id)
        records = await self.journal.read(session_id)
        transcript = fold(records)
        opened = transcript.opened
        if opened is None:
            await self.journal.release(lease)
            raise NotFound(f"Session {session_id} has lost its beginning; start a new one.")
        recorder = self._recorder(session_id, lease=lease, transcript=transcript)
        root = self.cwd(opening) if opening.stay else self._root(opened)
        workspace = await arrived(self._workspace(session_id, root, opening))
        began, last = records[0].at, records[-1].n
        parts = self._parts(session_id, opened, opening, workspace, began=began, after=last)
        self.tuned[session_id].resume(transcript.tuned)
        arrange(session_id, parts)
        self._track_taint(session_id, parts)
        session = Session(parts, recorder)
        await follow_choice(self, session, transcript)
        return session

    def _recorder(self, session_id: str, **given: Any) -> Recorder:
        given["veil"] = Veil(self.secrecy)
        make = Recorder if self._replay is None else self._replay.recorder
        return make(self.journal, session_id, self.world, **given)

    async def _own_folder(self, session_id: str, opening: Opening) -> str:
        if not opening.worktree:
            return self.cwd(opening)
        from hermes.undo.worktrees import Worktrees

        self._worktrees = self._worktrees or Worktrees(self.run)
        return await self._worktrees.enter(session_id, self.cwd(opening))

    def _parts(
        self,
        session_id: str,
        opened: SessionOpened,
        opening: Opening,
        workspace: Workspace,
        *,
        began: float,
        after: int = 0,
    ) -> Parts:
        names = wanted_names(self.settings, platform=opening.platform)
        tools = self.tools.choose(opened.tools, names)
        policy = session_rules(self, session_id, workspace, opening, began)
        taped = self._taped(session_id, opening, workspace, after)
        tuned = self.tuned[session_id] = Tuning(self.settings, policy)
        view = view_of(tools.specs, self.settings, source=opened.source, first=prefilled(self.run))
        connect = selecting(self, session_id, tuned.connecting(taped))
        hooked = self.hooked.around(session_id, connect)
        deps = Parts(
            journal=self.journal,
            connect=through(self.memory, session_id, opened, hooked),
            hooks=partial(self.hooked.of, workspace),
            budgeting=lambda: self._budgets.of(opened),
            view=tuned.applied(view),
            toolbox=tools,
            workspace=workspace,
            policy=policy,
            world=self.world,
            attended=opening.attended,
            budget=self._budget,
            approval_seconds=self.settings.approvals.timeout,
            services=tool_services(self, session_id, opened),
            web=web_access(self.run, policy),
            judge=self._approver(session_id),
            preflight=partial(preflight, workspace),
            engine=context_engine(self, session_id, opened, rules=opening.rules),
            remark=nearby(self.run, workspace, policy, opened) if opening.rules else None,
            tune=tuned.follow,
        )
        if self._replay is None:
            return deps
        return self._replay.adapt(deps, means_of(self, session_id, opened))

    def _approver(self, session_id: str) -> Judge:
        """Answers in the person's place what the rules call simple, while their mode is "smart"."""

        async def approve(effect: RunCommand, asked: Ask) -> bool:
            if self._replay is not None:
                return self._replay.approved_by_model()
            from hermes.models.approver import Approving

            session = self.session(session_id)
            return await Approving(self.models, self.settings, session).allows(effect, asked)

        return approve

    def _track_taint(self, session_id: str, parts: Parts) -> None:
        rules = self.tuned[session_id].rules
        witness(self.run, session_id, rules, self.commons.suspects, parts)

    def _root(self, opened: SessionOpened) -> str:
        if self._replay is not None:
            return self._replay.root(opened)
        return self.commons.root(opened.cwd)

    def _taped(
        self, session_id: str, opening: Opening, workspace: Workspace, after: int
    ) -> TieredConnect:
        """The way to models, past a tape where sessions are to be recorded."""
        if self._replay is not None:
            return self._replay.connect(self._connect)
        if not self.settings.sessions.record:
            return self._connect
        from hermes.replay.taping import Taping

        return Taping(self.run, self.models, session_id, opening, workspace, after).around(
            self._connect
        )

    def _connect(
        self, model: str, provider: str, meter: Meter, tier: str | None = None
    ) -> tuple[Provider, Limits]:
        connected, window = self.models.connect(model, provider, meter, tier=tier)
        return connected, limits_of(self.settings, window)

    def _workspace(self, session_id: str, root: str, opening: Opening) -> Workspace:
        if self._replay is not None:
            return self._replay.workspace(session_id, root)
        return workspace_of(self, session_id, root, opening)
