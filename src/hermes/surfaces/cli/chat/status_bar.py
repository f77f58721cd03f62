"""The live rows around the input: reply tail, activity, open question, status bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from hermes.app.session_controls import SessionControls
from hermes.commands.formatting import format_count, format_elapsed, format_money, one_line
from hermes.commands.tool_calls import CallDescription
from hermes.core.events import ApprovalAnswered, QuestionAnswered
from hermes.core.session import Session
from hermes.surfaces.cli.chat.cells import cells, cut
from hermes.surfaces.cli.chat.questions import OpenQuestion
from hermes.surfaces.cli.chat.reply import StreamedReply
from hermes.surfaces.cli.chat.screen import ChatScreen, Paint, Role

FRAME_SECONDS = 0.1
FACE_SECONDS = 4.0
TAIL_ROWS = 8
THINKING = "thinking"
# Wide enough for all facts, or for the important ones.
FULL_WIDTH = 76
COMPACT_WIDTH = 52
BAR_CELLS = 10
QUEUED_ROWS = 3
DEAF_SECONDS = 0.5
WAITS = "1 message is queued · ↑ edits it, Esc drops it"
WAIT = "{count} messages are queued · ↑ edits the last, Esc drops it"


class StatusBar:
    """The status bar of a session. `find_window` returns the context window of a model."""

    def __init__(
        self,
        session: Session,
        controls: SessionControls,
        find_window: Callable[[str, str], int],
        started_at: float,
    ) -> None:
        self._session = session
        self._controls = controls
        # The lookup is slow, and the row is drawn often.
        self._window = cache(find_window)
        self._started_at = started_at

    @property
    def shown(self) -> bool:
        return self._controls.display.status_bar

    def row(self, paint: Paint, width: int, now: float) -> str:
        transcript = self._session.transcript
        used, window = transcript.last_prompt, self._window(transcript.model, transcript.provider)
        share = used * 100 // window if window else 0
        facts = [one_line(transcript.model, 40)]
        if width >= COMPACT_WIDTH:
            facts.append(f"{format_count(used)}/{format_count(window)}")
        if width >= FULL_WIDTH and not paint.skin.words:
            full = min(BAR_CELLS, share * BAR_CELLS // 100)
            facts.append(f"[{'█' * full}{'░' * (BAR_CELLS - full)}] {share}%")
        else:
            facts.append(f"{share}%")
        if width >= COMPACT_WIDTH:
            if self._controls.display.show_cost and transcript.usage.cost is not None:
                facts.append(format_money(transcript.usage.cost))
            # Without seconds, so that an idle status bar is not redrawn.
            elapsed = now - self._started_at
            facts.append(f"{int(elapsed // 60)}m" if elapsed < 3600 else format_elapsed(elapsed))
        if transcript.compactions and width >= FULL_WIDTH:
            facts.append(f"compacted {len(transcript.compactions)}×")
        if transcript.title and width >= FULL_WIDTH:
            facts.append(one_line(transcript.title, 24))
        between = ", " if paint.skin.words else " │ "
        sign = paint.skin.branding.status_symbol
        role: Role = "error" if share >= 95 else "warn" if share >= 50 else "dim"
        row = cut(f"{sign} {between.join(facts)}", width)
        warning = f"{between}YOLO" if self._controls.mode == "off" else ""
        if cells(row) + cells(warning) > width:
            warning = ""
        return paint(row, role) + paint(warning, "error")


class RunningTool:
    """A running tool and its last output line."""

    def __init__(self, described: CallDescription, since: float) -> None:
        self.described = described
        self.since = since
        self.output = ""
        # The steps of a running plan.
        self.tasks: list[str] = []


class StatusPanel:
    """The live rows of one session. `activity` is what the model is doing; "" for nothing.
    Questions are asked one at a time."""

    def __init__(self, screen: ChatScreen, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.answer: StreamedReply | None = None
        self.busy = False
        self.faces = True
        self.activity = ""
        self.running: dict[str, RunningTool] = {}
        self.queued: tuple[str, ...] = ()
        self.background: tuple[str, ...] = ()
        self.status: StatusBar | None = None
        self._since = 0.0
        self._screen = screen
        self._asked: list[OpenQuestion] = []
        self._answered_at = float("-inf")

    @property
    def question(self) -> OpenQuestion | None:
        return self._asked[0] if self._asked else None

    @property
    def symbol(self) -> str:
        paint = self._screen.paint
        if self.question:
            return paint(self.question.symbol(paint.skin), "warn")
        brand = paint.skin.branding
        return paint(brand.busy_symbol if self.busy else brand.prompt_symbol, "prompt")

    @property
    def waiting(self) -> int:
        return len(self.queued) if self.busy else 0

    @property
    def moves(self) -> bool:
        """Whether the rows change without an event, as a clock does."""
        works = self.activity or self.running or self.background
        return self.question is not None or bool(self._screen.animated and works)

    def begin(self, activity: str) -> None:
        """The clock keeps running while the activity stays the same."""
        if activity != self.activity:
            self.activity, self._since = activity, self.clock()

    def rows(self, width: int, height: int) -> list[str]:
        paint, now = self._screen.paint, self.clock()
        if self.question:
            # Directly below the question, which has just been printed.
            below = self.question.rows(paint, width, now)
        else:
            below = ["", *self.activity_rows(width)]
        if self.status and self.status.shown:
            below.append(self.status.row(paint, width, now))
        return [*self.tail(width, max(0, height - len(below) - 1)), *below]

    def tail(self, width: int, most: int) -> list[str]:
        return self.answer.tail(width, min(most, TAIL_ROWS)) if self.answer else []

    def activity_rows(self, width: int) -> list[str]:
        """The activity, background work and queued messages."""
        rows, paint = [], self._screen.paint
        if activity := self._activity_text():
            frames = paint.skin.spinner.frames if self._screen.animated else ""
            sign = frames[int(self.clock() / FRAME_SECONDS) % len(frames)] if frames else "…"
            rows.append(f"{paint(sign, 'accent')} {paint(cut(activity, width - 2), 'dim')}")
        for tool in self.running.values():
            rows += tool.tasks
        if self.background:
            more = f" and {len(self.background) - 1} more" if len(self.background) > 1 else ""
            rows.append(paint(cut(f"↪ {self.background[0]}{more}", width), "dim"))
        if self.waiting:
            lines = [f"▹ {one_line(text)}" for text in self.queued[-QUEUED_ROWS:]]
            lines.append(paint.say(WAITS if self.waiting == 1 else WAIT, count=self.waiting))
            rows += [paint(cut(line, width), "dim") for line in lines]
        return rows

    def _activity_text(self) -> str:
        now, paint = self.clock(), self._screen.paint
        if len(self.running) > 1:
            since = min(tool.since for tool in self.running.values())
            text = paint.say("running {count} tools", count=len(self.running))
            return f"{text}  {format_elapsed(now - since)}"
        for tool in self.running.values():
            call, time = tool.described, format_elapsed(now - tool.since)
            return f"{call.verb} {call.detail}  {time}" + (
                f"  {tool.output}" if tool.output else ""
            )
        if not self.activity:
            return ""
        verb, elapsed, spinner = paint.say(self.activity), now - self._since, paint.skin.spinner
        thinks = self.activity == THINKING
        if thinks and spinner.thinking_verbs:
            verb = _rotate(spinner.thinking_verbs, elapsed)
        looks = spinner.thinking_faces if thinks else spinner.waiting_faces
        has_face = self.faces and looks and self._screen.animated
        face = f"{_rotate(looks, elapsed)} " if has_face else ""
        return f"{face}{verb}  {format_elapsed(elapsed)}"

    def ask(self, asked: OpenQuestion) -> None:
        self._asked.append(asked)
        if len(self._asked) == 1:
            self._put(asked)

    def close_question(self, event: ApprovalAnswered | QuestionAnswered) -> bool:
        """Close a question and ask the next one. Return whether the question was open."""
        left = [asked for asked in self._asked if asked.id != event.id]
        if len(left) == len(self._asked):
            return False
        self._asked = left
        self._answered_at = self.clock()
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
        now = self.clock()
        if now - self._answered_at < DEAF_SECONDS:
            # A repeated key must not answer a question before it was read.
            asked.deaf_until = now + DEAF_SECONDS
        rows = asked.rows(self._screen.paint, self._screen.width - 1, now)
        self._screen.question_opened(rows, secret=asked.secret)


def _rotate(texts: Sequence[str], seconds: float) -> str:
    return texts[int(seconds / FACE_SECONDS) % len(texts)]
