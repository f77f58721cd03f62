"""Shows the events of one session: its feed, its live rows and its questions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hermes.app.session_controls import SessionControls
from hermes.core.errors import HermesError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
    Record,
    TurnEnded,
    TurnStarted,
)
from hermes.core.prompt import ReasoningDelta, TextDelta
from hermes.core.recorder import Subscription
from hermes.core.session import Session
from hermes.core.world import Clock
from hermes.surfaces.cli.chat import questions
from hermes.surfaces.cli.chat.approval_panel import ApprovalPanel, find_edits, question_panel
from hermes.surfaces.cli.chat.feed import Feed
from hermes.surfaces.cli.chat.screen import ChatScreen
from hermes.surfaces.cli.chat.status_bar import FRAME_SECONDS, StatusBar, StatusPanel

FAULT = "Internal error: an input or event was not handled; see `hermes logs errors`."
# A faster stream is drawn this often.
STREAM_SECONDS = 1 / 15
# Without an animation, only clocks change.
CLOCK_SECONDS = 1.0

log = logging.getLogger(__name__)


class SessionView:
    """The screen's view of one session. Its tasks run in `group`."""

    def __init__(
        self,
        screen: ChatScreen,
        session: Session,
        controls: SessionControls,
        *,
        clock: Clock,
        find_window: Callable[[str, str], int],
        group: asyncio.TaskGroup,
    ) -> None:
        opened = session.transcript.opened
        self._screen = screen
        self._session = session
        self._clock = clock
        self._group = group
        self._moves = asyncio.Event()
        self.entered_at = clock.monotonic()
        self.panel = StatusPanel(screen, clock.monotonic)
        self.panel.status = StatusBar(session, controls, find_window, self.entered_at)
        self.feed = Feed(screen, self.panel, controls.display, opened.cwd if opened else "")

    async def read(self, events: Subscription) -> None:
        """Show events until the session is closed."""
        ticking = self._group.create_task(self._tick())
        try:
            async for record in events:
                try:
                    await self._show(record)
                except Exception:
                    log.exception("event not shown", extra={"kind": type(record.event).__name__})
                    self.feed.notice(FAULT, warning=True)
                self.refresh()
                if isinstance(record.event, TextDelta | ReasoningDelta):
                    # The subscription merges the deltas that arrive meanwhile: one redraw for all.
                    await self._clock.sleep(STREAM_SECONDS)
        finally:
            ticking.cancel()

    def refresh(self) -> None:
        """Draw the live rows, and again while they move."""
        self._screen.refresh()
        if self.panel.moves:
            self._moves.set()

    async def watch(self) -> None:
        """Report a session that stops without an event because its journal failed."""
        try:
            await self._session.wait_until_idle()
        except HermesError as error:
            self.panel.busy = False
            self.feed.notice(f"The session has stopped: {error}", warning=True)
            self._screen.refresh()

    async def _tick(self) -> None:
        """Redraw clocks and spinners while work is in progress. An idle chat has no timer."""
        while True:
            await self._moves.wait()
            await self._clock.sleep(FRAME_SECONDS if self._screen.animated else CLOCK_SECONDS)
            if self.panel.moves:
                self._screen.refresh()
            else:
                self._moves.clear()

    async def _show(self, record: Record) -> None:
        event, paint = record.event, self._screen.paint
        self.feed.show(record)
        match event:
            case ApprovalAsked():
                await self._ask_approval(event)
            case QuestionAsked():
                self.feed.put(question_panel(event, paint, self._screen.width - 1))
                self.panel.ask(questions.OpenQuestion(event, self._clock.monotonic(), paint.say))
            case ApprovalAnswered() | QuestionAnswered():
                if self.panel.close_question(event):
                    self.feed.put(questions.outcome(event, paint))
            case TurnStarted():
                self._group.create_task(self.watch())
            case TurnEnded():
                self.panel.withdraw()
                if self.feed.display.bell_on_complete:
                    self._screen.ring()
                if not self._session.transcript.waiting:
                    self._screen.ready()
            case _:
                pass

    async def _ask_approval(self, asked: ApprovalAsked) -> None:
        """Show what would happen, and ask."""
        paint, call = self._screen.paint, self.feed.find_call(asked.call_id)
        edits = await find_edits(asked, call, self._session.workspace)
        panel = ApprovalPanel(asked, paint, self._screen.width - 1, edits)
        if panel.shows_diff:
            self.feed.previewed.add(asked.call_id)
        self.feed.put(panel.text())
        question = questions.OpenQuestion(asked, self._clock.monotonic(), paint.say)
        question.details = lambda: panel.details(call)
        self.panel.ask(question)
