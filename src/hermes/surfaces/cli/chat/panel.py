"""What is shown around the input: the reply tail, the activity, the question, the status bar."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.events import ApprovalAnswered, QuestionAnswered
from hermes.surfaces.cli.chat.asking import OpenQuestion
from hermes.surfaces.cli.chat.live import LiveState
from hermes.surfaces.cli.chat.screen import ChatScreen

DEAF_SECONDS = 0.5


class StatusPanel:
    """The live rows of one session. Questions are asked one at a time."""

    def __init__(self, screen: ChatScreen, clock: Callable[[], float]) -> None:
        self.live = LiveState(clock)
        self._screen = screen
        self._clock = clock
        self._asked: list[OpenQuestion] = []
        self._answered_at = float("-inf")

    @property
    def question(self) -> OpenQuestion | None:
        return self._asked[0] if self._asked else None

    @property
    def symbol(self) -> str:
        if self.question:
            return self._screen.paint(self.question.symbol(self._screen.paint.skin), "warn")
        brand = self._screen.paint.skin.branding
        sign = brand.busy_symbol if self.live.busy else brand.prompt_symbol
        return self._screen.paint(sign, "prompt")

    @property
    def waiting(self) -> int:
        return len(self.live.queued) if self.live.busy else 0

    @property
    def moves(self) -> bool:
        """Whether it changes without an event, such as a clock."""
        works = self.live.activity or self.live.running or self.live.background
        return self.question is not None or bool(self._screen.animated and works)

    def rows(self, width: int, height: int) -> list[str]:
        paint, live, now = self._screen.paint, self.live, self._clock()
        if self.question:
            # Directly below the question, which has just been printed.
            below = self.question.rows(paint, width, now)
        else:
            below = ["", *live.activity_rows(paint, width, animated=self._screen.animated)]
        if live.status and live.status.shown:
            below.append(live.status.row(paint, width, now))
        return [*live.tail(width, max(0, height - len(below) - 1)), *below]

    def ask(self, asked: OpenQuestion) -> None:
        self._asked.append(asked)
        if len(self._asked) == 1:
            self._put(asked)

    def close_question(self, event: ApprovalAnswered | QuestionAnswered) -> bool:
        """Whether this question was open here; the next one is asked then."""
        left = [asked for asked in self._asked if asked.id != event.id]
        if len(left) == len(self._asked):
            return False
        self._asked = left
        self._answered_at = self._clock()
        self._screen.question_closed()
        if left:
            self._put(left[0])
        return True

    def withdraw(self) -> None:
        """Close all questions."""
        if self._asked:
            self._asked.clear()
            self._screen.question_closed()

    def _put(self, asked: OpenQuestion) -> None:
        now = self._clock()
        if now - self._answered_at < DEAF_SECONDS:
            # A repeated key must not answer a question before it was read.
            asked.deaf_until = now + DEAF_SECONDS
        rows = asked.rows(self._screen.paint, self._screen.width - 1, now)
        self._screen.question_opened(rows, secret=asked.secret)
