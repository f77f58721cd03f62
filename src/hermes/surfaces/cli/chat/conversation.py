"""The conversation behind a chat: passes on what the person wants and shows what happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import assert_never

from hermes.app.build import App
from hermes.app.opening import Opening
from hermes.app.references import refer
from hermes.app.workplace import in_words
from hermes.codec.values import replace
from hermes.commands.catalogue import COMMANDS, EXTRA
from hermes.commands.references import references_like
from hermes.commands.registry import (
    Drafted,
    Left,
    Moved,
    Outcome,
    Registry,
    Sent,
    Shown,
    Suggestion,
)
from hermes.core.commands import Answer, End, Interrupt, Retitle, Say, Steer
from hermes.core.errors import HermesError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ModelSwitched,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ReplyAdded,
    Titled,
    TurnEnded,
    TurnStarted,
)
from hermes.core.session import Session
from hermes.core.subscription import Subscription
from hermes.surfaces.cli.chat import asking, banner
from hermes.surfaces.cli.chat.desk import Answered, Desk, Input, Said, Stopped
from hermes.surfaces.cli.chat.feed import Feed
from hermes.surfaces.cli.chat.live import FRAME_SECONDS, Status
from hermes.surfaces.cli.chat.panel import Panel
from hermes.surfaces.cli.chat.screen import Screen

KEYS = (
    "Enter sends · Alt+Enter or Ctrl+J: new line · Ctrl+C stops what runs, twice leaves · "
    "Ctrl+D leaves"
)
FAULT = "A fault of Hermes: something could not be shown or done; see `hermes logs errors`."
LEAVE_SECONDS = 5.0
STOP_SECONDS = 0.05

log = logging.getLogger(__name__)


class Conversation:
    """In exactly one session at a time, and a `Here` for slash commands."""

    session: Session
    _panel: Panel
    _feed: Feed
    _reading: asyncio.Task[None]
    _group: asyncio.TaskGroup

    def __init__(self, app: App, desk: Desk, screen: Screen, opening: Opening) -> None:
        self.app = app
        self.registry = Registry(COMMANDS, "cli", note=KEYS, extra=EXTRA)
        self._desk = desk
        self._screen = screen
        self._opening = opening
        self._clock = app.world.clock.monotonic
        self._told: set[str] = set()
        self._entered_at = 0.0
        self._place = ""

    async def run(self) -> None:
        """Until the person leaves the desk. The session is stopped and ended then."""
        session = await self.app.open(self._opening)
        try:
            async with asyncio.TaskGroup() as self._group:
                await self._stay(session)
        except ExceptionGroup as errors:
            # The first one is the reason; the others only followed from it.
            raise errors.exceptions[0] from None

    def farewell(self) -> str:
        """How to come back; empty when there is nothing to come back to."""
        transcript = self.session.transcript
        if not transcript.turn_starts and not transcript.title:
            return ""
        seconds = self._clock() - self._entered_at
        return banner.farewell(
            transcript, self.session.id, seconds=seconds, paint=self._screen.paint
        )

    async def _stay(self, session: Session) -> None:
        await self._enter(session)
        self._desk.suggest = self._suggest
        lasting = [self._group.create_task(work) for work in (self._serve(), self._tick())]
        await self._desk.left.wait()
        for task in lasting:
            task.cancel()
        await self._leave(self.session, self._desk.reason)

    async def _suggest(self, line: str) -> Sequence[Suggestion]:
        return await self.registry.complete(line, self) or await references_like(self, line)

    # What the person wants.

    async def _serve(self) -> None:
        while True:
            wanted = await self._desk.inputs.get()
            try:
                await self._take(wanted)
            except HermesError as error:
                self._feed.notice(str(error), warning=True)
            except Exception:
                log.exception("input not carried out")
                self._feed.notice(FAULT, warning=True)
            if not self.session.busy:
                self._screen.ready()

    async def _take(self, wanted: Input) -> None:
        match wanted:
            case Said(text=text, early=early):
                await self._say(text, early=early)
            case Stopped():
                await self.session.send(Interrupt())
            case Answered(id=question_id, text=text):
                await self.session.send(Answer(id=question_id, text=text))
            case _:
                assert_never(wanted)

    async def _say(self, text: str, *, early: bool) -> None:
        if self.registry.meant(text):
            self._feed.echo(text.strip())
            await self._carry_out(await self.registry.run(text.strip(), self))
            return
        text = await self._referred(text)
        # What was typed before anything could run cannot be meant to stop it.
        mode = "queue" if early else self.app.settings.display.busy_input_mode
        if self.session.busy and mode == "steer":
            await self.session.send(Steer(text=text))
            return
        if self.session.busy and mode == "interrupt":
            await self.session.send(Interrupt())
        await self.session.send(Say(text=text))

    async def _referred(self, text: str) -> str:
        """With what its `@` references lead to."""
        if "@" not in text:
            return text
        found = await refer(self.app, self.session, text)
        for warning in found.warnings:
            self._feed.notice(warning, warning=True)
        return found.text

    async def _carry_out(self, outcome: Outcome) -> None:
        match outcome:
            case Shown(text=text):
                self._feed.put(text)
            case Sent(text=text):
                await self.session.send(Say(text=text))
            case Drafted(draft=draft, text=text):
                self._feed.notice(text)
                self._screen.draft = draft
            case Moved():
                await self._move(outcome)
            case Left():
                self._desk.leave()
            case _:
                assert_never(outcome)

    async def _move(self, moved: Moved) -> None:
        """Into another session. Where that cannot be opened, nothing changes."""
        opening = replace(self._opening, resume=moved.session_id, newest=None, session_id="")
        session = await self.app.open(opening)
        await self._leave(self.session, moved.reason)
        if moved.text:
            self._feed.notice(moved.text)
        await self._enter(session)
        if moved.title:
            await session.send(Retitle(title=moved.title))

    # What happens in the session.

    async def _enter(self, session: Session) -> None:
        settings, transcript = self.app.settings, session.transcript
        self.session = session
        self._entered_at = self._clock()
        root = transcript.opened.cwd if transcript.opened else ""
        self._desk.view = self._panel = Panel(self._screen, self._clock)
        self._feed = Feed(self._screen, self._panel.live, settings.display, root)
        self._place = self._place or await in_words(self.app)
        self._introduce()
        self._reading = self._group.create_task(self._read(session.subscribe()))
        self.app.attend(session)
        self._set_status()
        if transcript.turn_id or transcript.waiting:
            self._feed.expect(transcript.waiting)
            self._feed.know(transcript.unanswered)
            self._feed.notice("Going on where it stopped.")
            self._panel.live.busy = True
            session.resume()
            self._group.create_task(self._watch(session))
        else:
            self._screen.ready()

    def _introduce(self) -> None:
        """Say what has not been said in this chat: who answers, the news, the session's past."""
        settings, transcript = self.app.settings, self.session.transcript
        paint, width = self._screen.paint, self._screen.width - 1
        asks = settings.approvals.mode != "off"
        who = banner.introduction(
            transcript, asks=asks, paint=paint, width=width, place=self._place
        )
        news = [line for line in self.app.news if line not in self._told]
        rows = [] if who in self._told else [who]
        rows += banner.news(news, paint, width)
        self._told.update((who, *news))
        if rows:
            self._screen.show("\n".join(rows))
        if transcript.messages:
            past = banner.recap(transcript, self.session.id, settings.display, paint, width)
            if past:
                self._feed.put(past)

    async def _read(self, events: Subscription) -> None:
        async for record in events:
            try:
                self._see(record)
            except Exception:
                log.exception("event not shown", extra={"kind": type(record.event).__name__})
                self._feed.notice(FAULT, warning=True)
            self._screen.refresh()

    def _see(self, record: Record) -> None:
        event, paint, now = record.event, self._screen.paint, self._clock()
        self._feed.show(record)
        match event:
            case ApprovalAsked():
                self._feed.put(asking.approval_panel(event, paint, self._screen.width - 1))
                self._panel.ask(asking.approval(event, now))
            case QuestionAsked():
                self._feed.put(asking.question_panel(event, paint, self._screen.width - 1))
                self._panel.ask(asking.question(event, now))
            case ApprovalAnswered() | QuestionAnswered():
                if self._panel.answered(event):
                    self._feed.put(asking.outcome(event, paint))
            case TurnStarted():
                self._group.create_task(self._watch(self.session))
            case TurnEnded():
                self._panel.withdraw()
                if not self.session.transcript.waiting:
                    self._screen.ready()
            case ReplyAdded() | ModelSwitched() | Titled():
                self._set_status()
            case _:
                pass

    def _set_status(self) -> None:
        transcript = self.session.transcript
        status = self._panel.live.status or Status(started_at=self._entered_at)
        if status.model != transcript.model:
            status.model = transcript.model
            status.window = self.app.window(transcript.model, transcript.provider)
        status.used = transcript.last_prompt
        status.title = transcript.title
        status.yolo = self.app.settings.approvals.mode == "off"
        status.cost = transcript.usage.cost if self.app.settings.display.show_cost else None
        self._panel.live.status = status

    async def _watch(self, session: Session) -> None:
        """A session whose journal fails stops without an event; the person must know."""
        try:
            await session.settled()
        except HermesError as error:
            self._panel.live.busy = False
            self._feed.notice(f"The session has stopped: {error}", warning=True)
            self._screen.refresh()

    async def _tick(self) -> None:
        """Clocks and spinners move while something goes on."""
        while True:
            await self.app.world.clock.sleep(FRAME_SECONDS if self._screen.animated else 1.0)
            if self._panel.moves:
                self._screen.refresh()

    async def _leave(self, session: Session, reason: str) -> None:
        """Nothing goes on afterwards: neither the turn that runs nor one that waits."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                while session.busy:
                    await session.send(Interrupt())
                    await asyncio.sleep(STOP_SECONDS)
            await session.send(End(reason=reason))
        except (TimeoutError, HermesError):
            # What is unfinished stays so, and goes on when the session is resumed.
            pass
        await self.app.leave(session)
        # What the session said last is shown before anything of another one.
        await self._reading
