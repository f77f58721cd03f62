"""The state of a chat between its screen and its session: input typed early waits here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.commands.formatting import plural
from hermes.surfaces.cli.chat.screen import ChatScreen

if TYPE_CHECKING:
    from hermes.commands.registry import Suggestion
    from hermes.surfaces.cli.chat.questions import OpenQuestion
    from hermes.surfaces.cli.chat.status_bar import StatusPanel

TWICE_SECONDS = 2.0
Suggest = Callable[[str], Awaitable["Sequence[Suggestion]"]]
ARROWS = {"left": -1, "up": -1, "right": 1, "down": 1}


class SubmittedLine(Value):
    """A submitted line; `early` if there was no session yet."""

    text: str
    early: bool = False


class StopRequested(Value):
    """A request to stop the running turn."""


class QuestionAnswer(Value):
    """The answer to a question of the session."""

    id: str
    text: str
    # Why an approval is denied.
    reason: str = ""


class DetailsRequested(Value):
    """Show the details of the open approval."""


class OutputRequested(Value):
    """Show the output of the last tool call."""


class WithdrawRequested(Value):
    """Withdraw the last queued message; with `edit`, put it back into the input."""

    edit: bool


Input = (
    SubmittedLine
    | StopRequested
    | QuestionAnswer
    | WithdrawRequested
    | DetailsRequested
    | OutputRequested
)


class ChatState:
    """What the input line and the conversation share."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # What the user does.
        self.inputs: asyncio.Queue[Input] = asyncio.Queue()
        # Set when the user quits, for this reason.
        self.left = asyncio.Event()
        self.reason = "user_exit"
        # What is shown around the input once there is a session.
        self.view: StatusPanel | None = None
        self.suggest: Suggest | None = None
        self.screen: ChatScreen | None = None
        self._clock = clock
        self._interrupted_at = float("-inf")

    @property
    def confirming_quit(self) -> bool:
        """Whether another Ctrl+C quits."""
        return self._clock() - self._interrupted_at < TWICE_SECONDS

    def rows(self, width: int, height: int) -> list[str]:
        """The live rows above the input, each within the width."""
        waiting = self.inputs.qsize()
        early = f"starting… {plural(waiting, 'line')} queued" if waiting else ""
        rows = self.view.rows(width, height) if self.view else [early]
        if self.confirming_quit and self.screen:
            hint = self.screen.paint(self.screen.paint.say("Ctrl+C again to quit"), "warn")
            rows = [*rows[:-1], hint] if rows else [hint]
        return rows

    def symbol(self) -> str:
        return self.view.symbol if self.view else "❯"

    @property
    def _question(self) -> OpenQuestion | None:
        return self.view.question if self.view else None

    def asking(self) -> bool:
        """Whether a question is open."""
        return self._question is not None

    def approving(self) -> bool:
        """Whether an approval is open."""
        return self._question is not None and not self._question.free

    def asking_reason(self) -> bool:
        """Whether the user types the reason of a denial."""
        return self._question is not None and self._question.wants_reason

    def hiding(self) -> bool:
        """Whether the input is hidden."""
        return self._question is not None and self._question.secret

    def waiting(self) -> bool:
        """Whether a sent message can still be withdrawn."""
        return self.view is not None and self.view.waiting > 0

    def take_back(self, *, edit: bool) -> None:
        self.inputs.put_nowait(WithdrawRequested(edit=edit))

    def ask_for_output(self) -> None:
        self.inputs.put_nowait(OutputRequested())

    def submit(self, text: str) -> bool:
        """Handle Enter; return whether the text belongs in the history."""
        # A new message cancels the pending quit.
        self._interrupted_at = float("-inf")
        question = self._question
        if question is None:
            if text.strip():
                self.inputs.put_nowait(SubmittedLine(text=text, early=self.view is None))
            return bool(text.strip())
        answer = question.parse_answer(text)
        # Text is meant for the visible question; a lone Enter may be a repeated key.
        heard = text.strip() or self._clock() >= question.deaf_until
        if answer is not None and heard:
            self._answer(question, answer.text, answer.reason)
        return False

    def key(self, name: str) -> None:
        """A key for the open question: a digit, an arrow, "escape", "tab" or "?"."""
        question = self._question
        if question is None or self._clock() < question.deaf_until:
            return
        if name == "escape" and question.wants_reason:
            question.wants_reason = False
        elif name == "escape":
            self._answer(question, "" if question.free else "deny")
        elif name == "tab":
            question.wants_reason = not question.free
        elif name == "?":
            self.inputs.put_nowait(DetailsRequested())
        elif name in ARROWS:
            question.move(ARROWS[name])
        elif int(name) <= len(question.values):
            self._answer(question, question.values[int(name) - 1])
        if self.screen:
            self.screen.refresh()

    def interrupt(self) -> None:
        assert self.screen is not None
        if self.screen.draft:
            self.screen.draft = ""
            return
        if self.confirming_quit:
            self.leave()
            return
        self._interrupted_at = self._clock()
        self.inputs.put_nowait(StopRequested())
        self.screen.refresh()
        # Remove the hint.
        asyncio.get_running_loop().call_later(TWICE_SECONDS, self.screen.refresh)

    def leave(self) -> None:
        self.left.set()
        if self.screen:
            self.screen.close()

    async def complete(self, line: str) -> Sequence[Suggestion]:
        return await self.suggest(line) if self.suggest else ()

    def _answer(self, question: OpenQuestion, text: str, reason: str = "") -> None:
        if not question.answered:
            question.answered = True
            self.inputs.put_nowait(QuestionAnswer(id=question.id, text=text, reason=reason))
