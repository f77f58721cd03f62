"""The live rows around the input: reply tail, activity, open question, status bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hermes.commands.formatting import format_count, format_elapsed, format_money, one_line
from hermes.commands.tool_calls import CallDescription
from hermes.core.events import ApprovalAnswered, QuestionAnswered
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
WAITS = "1 message is queued · ↑ edits it, Esc drops it"
WAIT = "{count} messages are queued · ↑ edits the last, Esc drops it"


class StatusBar:
    """The facts of the status bar. `used` and `window` are tokens."""

    def __init__(self, *, started_at: float) -> None:
        self.model = ""
        self.used = 0
        self.window = 0
        self.cost: float | None = None
        self.title = ""
        self.yolo = False
        self.shown = True
        self.compactions = 0
        self.started_at = started_at

    def row(self, paint: Paint, width: int, now: float) -> str:
        share = self.used * 100 // self.window if self.window else 0
        facts = [one_line(self.model, 40)]
        if width >= COMPACT_WIDTH:
            facts.append(f"{format_count(self.used)}/{format_count(self.window)}")
        drawn = width >= FULL_WIDTH and not paint.skin.words
        facts.append(f"{_bar(share)} {share}%" if drawn else f"{share}%")
        if self.cost is not None and width >= COMPACT_WIDTH:
            facts.append(format_money(self.cost))
        if width >= COMPACT_WIDTH:
            facts.append(_minutes(now - self.started_at))
        if self.compactions and width >= FULL_WIDTH:
            facts.append(f"compacted {self.compactions}×")
        if self.title and width >= FULL_WIDTH:
            facts.append(one_line(self.title, 24))
        between = ", " if paint.skin.words else " │ "
        sign = paint.skin.branding.status_symbol
        row = paint(cut(f"{sign} {between.join(facts)}", width), _load_role(share))
        warning = f"{between}YOLO"
        return row + paint(warning, "error") if self._warns(row, warning, width) else row

    def _warns(self, row: str, warning: str, width: int) -> bool:
        return self.yolo and cells(row) + cells(warning) <= width


class RunningTool:
    """A running tool and its last output line."""

    def __init__(self, deed: CallDescription, since: float) -> None:
        self.deed = deed
        self.since = since
        self.said = ""


class LiveState:
    """The live state. `activity` is what the model is doing; "" for nothing."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.answer: StreamedReply | None = None
        self.busy = False
        self.faces = True
        self.activity = ""
        self.since = 0.0
        self.running: dict[str, RunningTool] = {}
        self.queued: tuple[str, ...] = ()
        self.background: tuple[str, ...] = ()
        self.status: StatusBar | None = None

    def begin(self, activity: str) -> None:
        """The clock keeps running while the activity stays the same."""
        if activity != self.activity:
            self.activity, self.since = activity, self.clock()

    def tail(self, width: int, most: int) -> list[str]:
        return self.answer.tail(width, min(most, TAIL_ROWS)) if self.answer else []

    def activity_rows(self, paint: Paint, width: int, *, animated: bool) -> list[str]:
        """The activity, background work and queued messages."""
        rows = []
        if words := self._activity_text(paint, faces=animated and self.faces):
            frames = paint.skin.spinner.frames
            frame = int(self.clock() / FRAME_SECONDS) % len(frames) if animated and frames else -1
            sign = frames[frame] if frame >= 0 else "…"
            rows.append(f"{paint(sign, 'accent')} {paint(cut(words, width - 2), 'dim')}")
        if self.background:
            more = f" and {len(self.background) - 1} more" if len(self.background) > 1 else ""
            rows.append(paint(cut(f"↪ {self.background[0]}{more}", width), "dim"))
        if self.queued and self.busy:
            rows += [
                paint(cut(f"▹ {one_line(text)}", width), "dim")
                for text in self.queued[-QUEUED_ROWS:]
            ]
            hint = paint.say(WAITS if len(self.queued) == 1 else WAIT, count=len(self.queued))
            rows.append(paint(cut(hint, width), "dim"))
        return rows

    def _activity_text(self, paint: Paint, *, faces: bool) -> str:
        now, spinner = self.clock(), paint.skin.spinner
        if len(self.running) > 1:
            since = min(tool.since for tool in self.running.values())
            words = paint.say("running {count} tools", count=len(self.running))
            return f"{words}  {format_elapsed(now - since)}"
        for tool in self.running.values():
            said = f"  {tool.said}" if tool.said else ""
            return f"{tool.deed.verb} {tool.deed.detail}  {format_elapsed(now - tool.since)}{said}"
        if not self.activity:
            return ""
        verb = paint.say(self.activity)
        if self.activity == THINKING and spinner.thinking_verbs:
            verb = _rotate(spinner.thinking_verbs, now - self.since)
        looks = spinner.thinking_faces if self.activity == THINKING else spinner.waiting_faces
        face = f"{_rotate(looks, now - self.since)} " if faces and looks else ""
        return f"{face}{verb}  {format_elapsed(now - self.since)}"


def _rotate(words: Sequence[str], seconds: float) -> str:
    return words[int(seconds / FACE_SECONDS) % len(words)]


def _bar(share: int) -> str:
    full = min(BAR_CELLS, share * BAR_CELLS // 100)
    return f"[{'█' * full}{'░' * (BAR_CELLS - full)}]"


def _minutes(seconds: float) -> str:
    """Without seconds, so that an idle status bar is not redrawn."""
    return f"{int(seconds // 60)}m" if seconds < 3600 else format_elapsed(seconds)


def _load_role(share: int) -> Role:
    if share >= 95:
        return "error"
    return "warn" if share >= 50 else "dim"


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
