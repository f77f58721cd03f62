"""The chat controller: carries out the user's input and shows the events of a session. It imports
everything that a session needs, so it is loaded after the prompt is shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.values import JsonObject, replace
from hermes.commands.background import start_task
from hermes.commands.catalogue import COMMANDS, DYNAMIC_COMMANDS
from hermes.commands.extensions import shell_command
from hermes.commands.input import attach_image, references_like
from hermes.commands.registry import (
    AttachImage,
    CommandRegistry,
    CopyText,
    OpenEditor,
    Outcome,
    Quit,
    Reload,
    SendMessage,
    ShowText,
    StartWork,
    Suggestion,
    SwitchSession,
)
from hermes.config.environment import env_flag
from hermes.context.references import expand_references
from hermes.core.commands import Answer, Interrupt, Retitle, Say, Withdraw
from hermes.core.errors import HermesError
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.hosting.request import BusyMode, send_message
from hermes.skills.library import with_skills
from hermes.surfaces.cli.chat import banner
from hermes.surfaces.cli.chat.chat_state import (
    ChatState,
    DetailsRequested,
    OutputRequested,
    QuestionAnswer,
    StopRequested,
    SubmittedLine,
    WithdrawRequested,
)
from hermes.surfaces.cli.chat.feed import Feed
from hermes.surfaces.cli.chat.introduction import TIPS, Surroundings, introduction
from hermes.surfaces.cli.chat.screen import ChatScreen
from hermes.surfaces.cli.chat.session_view import FAULT, SessionView
from hermes.surfaces.cli.chat.shutdown import BackgroundTasks, first_of, stop
from hermes.surfaces.cli.chat.status_bar import StatusPanel
from hermes.surfaces.cli.oneshot import session_request
from hermes.workspaces.placement import describe_placement

SECRET_SECONDS = 300.0

log = logging.getLogger(__name__)


async def run_session(options: Mapping[str, Any], state: ChatState, screen: ChatScreen) -> str:
    """Run a chat until the user quits. Returns the text to print at the end."""
    before: ChatController | None = None
    request = session_request(options, attended=True)
    while True:
        async with start(options) as app:
            # Fail now rather than when the first message cannot be saved.
            app.context.home.ensure_folder(app.context.home.root)
            if options.get("skills") and before is None:
                skills = app.skills(app.cwd(request))
                request = await with_skills(skills, request, options["skills"])
            controller = ChatController(app, state, screen, request, before)
            await controller.run()
            if not controller.reload.is_set():
                return "\n".join((controller.farewell(), *app.context.exit_notices)).strip()
        # The same session if it has begun, else a new one.
        resume = controller.session.id if controller.has_begun else ""
        request, before = replace(request, resume=resume, newest=None), controller


class ChatController:
    """A chat with one session at a time; the `CommandContext` of slash commands."""

    session: Session
    _compactions: int
    _view: SessionView
    _panel: StatusPanel
    _feed: Feed
    _reading: asyncio.Task[None]
    _group: asyncio.TaskGroup

    def __init__(
        self,
        app: App,
        state: ChatState,
        screen: ChatScreen,
        request: SessionRequest,
        before: ChatController | None = None,
    ) -> None:
        self.app = app
        self.registry = CommandRegistry(
            (*COMMANDS, *banner.SKIN_COMMANDS), "cli", note=banner.KEYS, extra=DYNAMIC_COMMANDS
        )
        self._state = state
        self._screen = screen
        self._request = request
        self._shown_notices: set[str] = before._shown_notices if before else {""}
        self._shown = before.session.id if before else ""
        self.reload = asyncio.Event()
        self._placement = ""
        self._skills: tuple[str, ...] = ()
        self._tip: str = (
            before._tip if before else TIPS[int(app.context.world.clock.now()) % len(TIPS)]
        )
        self.background_work = self._background = BackgroundTasks(self._report)
        self._deleting = False
        app.shared.ask_secret = self._ask_secret

    async def run(self) -> None:
        """Run until the user quits or reloads; then stop and end the session."""
        session = await self.app.open(self._request)
        try:
            async with asyncio.TaskGroup() as self._group:
                await self._enter(session)
                self._state.suggest = self._suggest
                serving = self._group.create_task(self._serve())
                await first_of(self._state.left, self.reload)
                serving.cancel()
                await self._background.leave()
                reason = "reloaded" if self.reload.is_set() else self._state.reason
                await self._leave(self.session, reason)
                if self._deleting and self.session.transcript.messages:
                    await self.app.archive.delete(self.session.id)
        except ExceptionGroup as errors:
            # The first exception is the cause of the others.
            raise errors.exceptions[0] from None

    @property
    def has_begun(self) -> bool:
        """Whether there is anything to resume."""
        return bool(self.session.transcript.turn_starts or self.session.transcript.title)

    def farewell(self) -> str:
        """How to resume the session; empty when there is nothing to resume."""
        if self._deleting or not self.has_begun:
            return ""
        return banner.farewell(
            self.session.transcript,
            self.session.id,
            seconds=self.app.context.world.clock.monotonic() - self._view.entered_at,
            paint=self._screen.paint,
            width=self._screen.width - 1,
        )

    async def _suggest(self, line: str) -> Sequence[Suggestion]:
        return await self.registry.complete(line, self) or await references_like(self, line)

    # Input.

    async def _serve(self) -> None:
        while not self.reload.is_set():
            wanted = await self._state.inputs.get()
            try:
                match wanted:
                    case SubmittedLine(text=text, early=early):
                        await self._submit(text, early=early)
                    case StopRequested():
                        self._background.stop()
                        await self.session.send(Interrupt())
                    case WithdrawRequested(edit=edit):
                        if newest := self._feed.newest_waiting:
                            await self.session.send(Withdraw(n=newest[0]))
                            if edit and not self._screen.draft:
                                self._screen.draft = newest[1]
                    case QuestionAnswer(id=question_id, text=text, reason=reason):
                        await self.session.send(Answer(id=question_id, text=text, reason=reason))
                    case OutputRequested():
                        self._feed.show_tool_output()
                    case DetailsRequested():
                        if (question := self._panel.question) and question.details:
                            self._feed.put(question.details())
                    case _:
                        assert_never(wanted)
            except HermesError as error:
                self._feed.notice(str(error), warning=True)
            except Exception:
                log.exception("input failed")
                self._feed.notice(FAULT, warning=True)
            if not self.session.busy:
                self._screen.ready()

    async def _submit(self, text: str, *, early: bool) -> None:
        if self.registry.is_command(text):
            self._feed.echo(text.strip())
            await self._carry_out(await self.registry.run(text.strip(), self))
            self._apply_display()
            self._panel.background = self._background.names
            return
        if text.startswith("!") and (script := text[1:].strip()):
            self._feed.echo(text.strip())
            seconds = self.app.context.settings.terminal.timeout
            await self._carry_out(shell_command(self, script, seconds=seconds))
            return
        try:
            files = self._screen.pictures(text)
            images = [await attach_image(self.app.context.home, Path(file)) for file in files]
        except HermesError:
            self._screen.draft = text
            raise
        if "@" in text:
            found = await expand_references(self.app.context, self.app.models, self.session, text)
            text = found.text
            for warning in found.warnings:
                self._feed.notice(warning, warning=True)
        # Input from before the session was open cannot mean to interrupt it.
        mode: BusyMode = "queue" if early else self._feed.display.busy_input_mode
        await self._continue_compacted()
        await send_message(self.session, Say(text=text, images=tuple(images)), mode)

    async def _carry_out(self, outcome: Outcome) -> None:
        match outcome:
            case ShowText(text=text):
                if text:
                    self._feed.show_output(text)
            case SendMessage(text=text, origin=origin, calls=calls):
                await self._continue_compacted()
                await self.session.send(Say(text=text, origin=origin, calls=calls))
            case SwitchSession():
                await self._move(outcome)
            case Quit(delete=delete):
                self._deleting = delete
                self._state.leave()
            case Reload():
                self._feed.notice("Reloading settings, keys, skills and MCP servers.")
                self.reload.set()
            case StartWork(text=text):
                if text:
                    self._feed.notice(text)
                self._background.begin(outcome, self._group)
                self._panel.background = self._background.names
                self._view.refresh()
            case AttachImage(path=path, text=text):
                self._feed.notice(text)
                self._screen.attach(path)
            case CopyText(text=text):
                done = self._screen.copy(text)
                self._feed.notice("Copied." if done else "This terminal has no clipboard.")
            case OpenEditor(draft=draft):
                if not self._screen.compose(draft):
                    self._feed.notice("This terminal cannot open an editor.")
            case _:
                assert_never(outcome)

    def _report(self, text: str, work: StartWork) -> None:
        """Show the result of background work."""
        self._panel.background = self._background.names
        self._feed.report(text, is_answer=work.is_answer)
        self._view.refresh()

    def _apply_display(self) -> None:
        """Apply the display settings, which a command may have changed."""
        display = self._feed.display = self.app.controls[self.session.id].display
        self._panel.faces = display.kaomoji
        problem = banner.apply_display(self._screen.paint, display, self.app.context.home)
        if problem not in self._shown_notices:
            self._shown_notices.add(problem)
            self._feed.notice(problem, warning=True)

    async def _ask_secret(self, name: str, prompt: str, details: JsonObject) -> str | None:
        """Ask for a secret that a skill or tool needs; the input is hidden."""
        question = f"{prompt or f'{name} is needed'}\n{details.get('help') or ''}".strip()
        return await self.session.ask_secret(f"{question} ({name})", SECRET_SECONDS)

    async def _move(self, moved: SwitchSession) -> None:
        """Switch to another session. Nothing changes if it cannot be opened."""
        request = replace(self._request, resume=moved.session_id, newest=None, session_id="")
        session = await self.app.open(request)
        # Display settings belong to the terminal, not to the session.
        self.app.controls[session.id].display = self._feed.display
        await self._leave(self.session, moved.reason)
        await self.app.hooks.reset(self.session.id, session, moved.reason)
        if moved.clear:
            self._screen.clear()
        if moved.text:
            self._feed.notice(moved.text)
        await self._enter(session)
        if moved.title:
            await session.send(Retitle(title=moved.title))

    async def _continue_compacted(self) -> None:
        """Continue in a child session if this one was compacted and the settings want that."""
        session, compactions = self.session, len(self.session.transcript.compactions)
        if compactions == self._compactions or session.busy:
            return
        self._compactions = compactions
        if self.app.context.settings.compression.in_place:
            return
        await self._leave(session, "compression")
        request = replace(self._request, resume=session.id, newest=None, session_id="")
        child = await self.app.open(request)
        self.app.controls[child.id].display = self._feed.display
        self._shown = child.id
        self._feed.notice(f"The conversation was compacted; it continues in session {child.id}.")
        await self._enter(child)

    # Events.

    async def _enter(self, session: Session) -> None:
        transcript = session.transcript
        self.session, self._compactions = session, len(transcript.compactions)
        root = transcript.opened.cwd if transcript.opened else ""
        self._view = SessionView(
            self._screen,
            session,
            self.app.controls[session.id],
            clock=self.app.context.world.clock,
            find_window=self.app.models.window,
            group=self._group,
        )
        self._feed, self._panel = self._view.feed, self._view.panel
        self._state.view = self._panel
        self._panel.background = self._background.names
        self._apply_display()
        self._placement = self._placement or await describe_placement(self.app.context)
        if not self._skills:
            scanned = await asyncio.to_thread(self.app.skills(root).scan.scan)
            self._skills = tuple(entry.category for entry in scanned.entries)
        self._introduce()
        self._reading = self._group.create_task(self._view.read(session.subscribe()))
        self.app.start_session_tasks(session)
        self._group.create_task(self._continue_tasks(session))
        if transcript.turn_id or transcript.waiting:
            self._feed.add_queued(transcript.waiting)
            self._feed.add_calls(transcript.unanswered)
            self._feed.notice("Continuing the interrupted turn.")
            self._panel.busy = True
            session.continue_unfinished()
            self._group.create_task(self._view.watch())
        else:
            self._screen.ready()

    async def _continue_tasks(self, session: Session) -> None:
        """Continue the background tasks that an earlier process left, and report them here."""
        if not session.transcript.messages:
            return
        from hermes.app.side_questions import owed_tasks  # only resumed sessions have any

        for task in await owed_tasks(self.app, session):
            self._background.begin(start_task(self.app, session, task.text, task.id), self._group)
        self._panel.background = self._background.names

    def _introduce(self) -> None:
        """Show what this chat has not shown yet: model, notices, and the past of the session."""
        settings, transcript = self.app.context.settings, self.session.transcript
        paint, width = self._screen.paint, self._screen.width - 1
        head = ""
        if not env_flag(self.app.context.env, "HERMES_QUIET"):
            found = Surroundings(
                asks=self.app.controls[self.session.id].mode != "off",
                placement=self._placement,
                skills=self._skills,
                tip=self._tip,
            )
            compact = self._feed.display.compact
            head = introduction(transcript, found, paint, width, compact=compact)
        notices = [line for line in self.app.context.notices if line not in self._shown_notices]
        rows = [] if head in self._shown_notices else [head]
        rows += banner.notice_rows(notices, paint, width)
        self._shown_notices.update((head, *notices))
        if rows:
            self._screen.show("\n".join(rows))
        known, self._shown = self._shown, ""
        if transcript.messages and self.session.id != known:
            past = banner.recap(transcript, self.session.id, settings.display, paint, width)
            if past:
                self._feed.put(past)

    async def _leave(self, session: Session, reason: str) -> None:
        await stop(session, reason)
        await self.app.close_session(session)
        # Show the last events of this session before those of another.
        await self._reading
