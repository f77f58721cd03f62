"""The composition root: settings in, rooms joined, sessions out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hermes.app.budgets import Budgets
from hermes.app.furnishing import furnishing
from hermes.app.judging import policy_settings
from hermes.app.models.choice import Choice
from hermes.app.models.models import Models
from hermes.app.opening import Opening
from hermes.app.prompting import system_text, view_of
from hermes.app.toolbox import Tools, wanted_names
from hermes.app.upkeep import upkeep
from hermes.codec.json import convert, plain
from hermes.config.load import Config
from hermes.config.logs import Logging
from hermes.context.system import join
from hermes.core.budget import Budget
from hermes.core.caps import Caps
from hermes.core.commands import Say, SwitchModel
from hermes.core.errors import NotFound
from hermes.core.events import Record, SessionOpened
from hermes.core.guardrails import Guardrails
from hermes.core.ports import Meter, Provider, Workspace
from hermes.core.recorder import Recorder
from hermes.core.session import Connect, Parts, Session
from hermes.core.tools import ToolSettings
from hermes.core.transcript import Transcript, fold
from hermes.core.turn import Limits
from hermes.core.world import World
from hermes.journal.journal import SqliteJournal
from hermes.policy.rules import Rules
from hermes.workspaces.confinement.sandbox import Confinement
from hermes.workspaces.environment import child_environment
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.shell import ShellSettings

if TYPE_CHECKING:
    from hermes.app.library import Library

log = logging.getLogger(__name__)

INBOX_SECONDS = 0.25
Arrange = Callable[[str, Parts], None]


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
    ) -> None:
        self.config = config
        self.settings = config.settings
        self.home = config.home
        self.world = world
        self.env = env
        self.news: list[str] = [finding.text for finding in config.findings]
        self.journal = SqliteJournal(config.home.journal, world)
        self.models = Models(config, world, env=env)
        self.tools = Tools()
        # Three seams for whoever plays a session again: they are others then.
        self.new_recorder: Callable[..., Recorder] = Recorder
        self.person = str(Path.home())
        self.state = str(config.home.root.resolve())
        self._log_files = log_files
        self._budget = budget
        self._budgets = Budgets(config, env)
        self._open: dict[str, tuple[Session, list[asyncio.Task[None]]]] = {}

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
        arrange = arrange or (lambda _id, _parts: None)
        session_id = await self._wanted(opening)
        session = await (
            self._resume(session_id, opening, arrange)
            if session_id
            else self._new(opening, arrange)
        )
        self._open[session.id] = (session, [])
        return session

    async def leave(self, session: Session) -> None:
        """Stop what runs in the session and let go of it."""
        _, tasks = self._open.pop(session.id)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.close()

    async def leave_word(self, opening: Opening, say: Say) -> AsyncGenerator[Record]:
        """For a session that another process is in: the message, which needs a key, is left there
        when this returns. What it returns follows the turn that answers; without a TurnEnded at
        the end, that process has gone and the session can be opened."""
        # Few runs meet another one, so the others do not pay for it.
        from hermes.app.elsewhere import follow

        session_id = await self._wanted(opening)
        await self.journal.post(session_id, say, key=say.key)
        return follow(self.journal, self.world.clock, session_id, say.key)

    def attend(self, session: Session) -> None:
        """For surfaces that stay: carry out what other processes leave for the session, and
        tell it when its background processes end."""
        tasks = self._open[session.id][1]
        for work in (
            self._watch_inbox(session),
            self._watch_processes(session),
            upkeep(self, session),
            self._name(session),
            self.models.acquaint(session.transcript.model, session.transcript.provider),
        ):
            tasks.append(asyncio.ensure_future(_quietly(work)))

    def session(self, session_id: str) -> Session | None:
        """One that is open here."""
        held = self._open.get(session_id)
        return held[0] if held else None

    def switch_back(self, session: Session, model: str, provider: str) -> None:
        """Return to this model after the next turn."""
        from hermes.app.models.switching import switch_back

        work = switch_back(session, session.subscribe(), model, provider)
        self._open[session.id][1].append(asyncio.ensure_future(_quietly(work)))

    async def close(self) -> None:
        for session, _ in tuple(self._open.values()):
            await self.leave(session)
        await self.models.close()
        await self.journal.close()
        if self._log_files is not None:
            self._log_files.close()

    @property
    def library(self) -> Library:
        """The past sessions of this home."""
        # Most runs never look back, so they do not pay for it.
        from hermes.app.library import Library

        return Library(self.journal, self.home)

    @property
    def caps(self) -> Caps:
        """What may be spent, as the settings say now."""
        return self._budgets.caps

    def window(self, model: str, provider: str) -> int:
        """How many tokens the model takes at once."""
        return self.models.window(model, provider)

    async def _wanted(self, opening: Opening) -> str:
        """The id of the session to go on with, "" for a new one."""
        named = opening.resume or opening.newest
        if named:
            return await self.library.find(named)
        return "" if opening.newest is None else await self.library.newest(opening.source)

    async def _new(self, opening: Opening, arrange: Arrange) -> Session:
        choice = await self.models.choose()
        self._announce(choice)
        cwd = self.cwd(opening)
        tools = wanted_names(self.settings, reduced=choice.reduced)
        text = system_text(
            opening,
            choice,
            self.settings,
            self.home,
            cwd=cwd,
            tools=tools,
            now=self.world.clock.now(),
        )
        self.news += text.warnings
        opened = SessionOpened(
            source=opening.source,
            cwd=cwd,
            model=choice.model,
            provider=choice.provider,
            system=join(text.layers),
            tools=tools,
            principal=opening.principal,
            parent=opening.parent,
            job=opening.job or await self._job_of(opening.parent),
        )
        session_id = opening.session_id or self.world.new_session_id()
        recorder = self.new_recorder(self.journal, session_id, self.world, opening=opened)
        parts = self._parts(session_id, opened, opening)
        arrange(session_id, parts)
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
            raise NotFound(f"The beginning of session {session_id} cannot be read.")
        recorder = self.new_recorder(
            self.journal, session_id, self.world, lease=lease, transcript=transcript
        )
        parts = self._parts(session_id, opened, opening, after=records[-1].n)
        arrange(session_id, parts)
        session = Session(parts, recorder)
        await self._follow_choice(session, transcript)
        return session

    async def _follow_choice(self, session: Session, transcript: Transcript) -> None:
        """A resumed session keeps its model, unless another was asked for or it is out of reach."""
        wanted = self.models.asked_for()
        stays = not wanted and self.models.reachable(transcript.model, transcript.provider)
        if stays:
            return
        choice = await self.models.choose()
        self._announce(choice)
        if (choice.model, choice.provider) == (transcript.model, transcript.provider):
            return
        if not wanted:
            self.news.append(
                f"{transcript.model} ({transcript.provider}) is not available now; "
                f"{choice.model} goes on."
            )
        await session.send(SwitchModel(model=choice.model, provider=choice.provider))

    def _announce(self, choice: Choice) -> None:
        if choice.line:
            self.news.append(choice.line)

    def cwd(self, opening: Opening) -> str:
        """The folder that a session starts in."""
        cwd = Path(opening.cwd or self.settings.terminal.cwd).expanduser()
        return str(cwd.resolve())

    def _parts(
        self, session_id: str, opened: SessionOpened, opening: Opening, *, after: int = 0
    ) -> Parts:
        tools = self.tools.choose(opened.tools)
        root = self._root(opened)
        workspace = self._workspace(session_id, root)
        return Parts(
            journal=self.journal,
            connect=self._taped(session_id, opening, workspace, after),
            budgeting=lambda: self._budgets.of(opened),
            view=view_of(opened.system, tools.specs, self.settings),
            toolbox=tools,
            workspace=workspace,
            policy=self._policy(root, opening),
            world=self.world,
            attended=opening.attended,
            budget=self._budget,
            approval_seconds=self.settings.approvals.timeout,
            furnish=furnishing(self, session_id, opened, workspace),
        )

    def _root(self, opened: SessionOpened) -> str:
        if Path(opened.cwd).is_dir():
            return opened.cwd
        root = str(Path.cwd())
        if opened.cwd:
            self.news.append(f"{opened.cwd} is gone; this session goes on in {root}.")
        return root

    def _taped(
        self, session_id: str, opening: Opening, workspace: Workspace, after: int
    ) -> Connect:
        """The way to models, past a tape where sessions are to be recorded."""
        if not self.settings.sessions.record:
            return self._connect
        from hermes.app.taping import Taping

        return Taping(self, session_id, opening, workspace, after).around(self._connect)

    def _connect(self, model: str, provider: str, meter: Meter) -> tuple[Provider, Limits]:
        connected, window = self.models.connect(model, provider, meter)
        return connected, self._limits(window)

    def _limits(self, window: int) -> Limits:
        settings = self.settings
        return Limits(
            max_steps=settings.agent.max_turns,
            window=window,
            guardrails=convert(Guardrails, plain(settings.tool_loop_guardrails)),
            settings=ToolSettings(
                max_bytes=settings.tool_output.max_bytes,
                max_lines=settings.tool_output.max_lines,
                max_line_length=settings.tool_output.max_line_length,
                file_read_max_chars=settings.file_read_max_chars,
                terminal_timeout=settings.terminal.timeout,
                terminal_max_timeout=settings.terminal.max_foreground_timeout,
                clarify_timeout=settings.agent.clarify_timeout,
            ),
        )

    def _policy(self, root: str, opening: Opening) -> Rules:
        mode = self.settings.approvals.noninteractive_mode
        approved = not opening.attended and mode == "approve"
        return Rules(
            policy_settings(self.config, surface=opening.source, approved=approved),
            root=root,
            home=self.person,
            state=self.state,
            keep=self._keep_allowed,
        )

    def _keep_allowed(self, subject: str) -> None:
        """What was allowed for ever goes into the settings, where the person can read it."""
        from hermes.config.edit import allow_always

        allow_always(self.home, subject)

    def _workspace(self, session_id: str, root: str) -> Workspace:
        terminal = self.settings.terminal
        local = LocalWorkspace(
            root,
            state=self.home.sessions / session_id,
            world=self.world,
            env=child_environment(self.env, terminal.env_passthrough),
            shell=ShellSettings(
                persistent=terminal.persistent_shell,
                init_files=terminal.shell_init_files,
                auto_source_bashrc=terminal.auto_source_bashrc,
                passthrough=terminal.env_passthrough,
            ),
            confinement=Confinement(
                wanted=terminal.confinement,
                network=terminal.confinement_network,
                hidden=(self.state, *terminal.confinement_hidden),
                writable=terminal.confinement_writable,
                cache=str(self.home.cache / "confined"),
            ),
        )
        return self._undoable(session_id, local) if self.settings.checkpoints.enabled else local

    def _undoable(self, session_id: str, workspace: Workspace) -> Workspace:
        from hermes.app.undoing import undoing

        def where() -> tuple[str, str]:
            session = self.session(session_id)
            return session_id, session.transcript.turn_id if session else ""

        return undoing(self).around(workspace, where=where, warn=self.news.append)

    async def _name(self, session: Session) -> None:
        from hermes.app.titles import Titles

        titles = Titles(self.models, self.settings, self.library)
        if titles.wanted(session):
            await titles.follow(session, session.subscribe())

    async def _watch_inbox(self, session: Session) -> None:
        seen = -1
        while True:
            now = self.journal.changed()
            if now != seen:
                seen = now
                await session.check_inbox()
            await self.world.clock.sleep(INBOX_SECONDS)

    async def _watch_processes(self, session: Session) -> None:
        async for notice in session.notices():
            origin = f"process:{notice.process_id}"
            await session.send(Say(text=notice.text, key=notice.key, origin=origin))


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """A watcher that fails is told in the log and takes nothing else down."""
    try:
        await work
    except Exception:
        log.exception("a watcher stopped")
