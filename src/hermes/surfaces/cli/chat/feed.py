"""Renders the events of a session."""

from __future__ import annotations

import re
import time
from typing import Literal

from hermes.commands.catalogue import COMMANDS
from hermes.commands.formatting import explain_ending, is_error, one_line, sanitize
from hermes.commands.language import Translator
from hermes.commands.skills import user_text
from hermes.commands.tool_calls import FailedEdits, describe_call, image_of
from hermes.config.session_settings import DisplaySettings
from hermes.context.references import typed_text
from hermes.core.events import (
    MessageReceived,
    ModelCalled,
    ModelSwitched,
    Record,
    ReplyAdded,
    Steered,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta
from hermes.surfaces.cli.chat.banner import SKIN_COMMANDS
from hermes.surfaces.cli.chat.cells import cells, first_row, wrap, wrap_columns
from hermes.surfaces.cli.chat.reply import StreamedReply
from hermes.surfaces.cli.chat.screen import ChatScreen, Paint
from hermes.surfaces.cli.chat.status_bar import RunningTool, StatusPanel
from hermes.surfaces.cli.chat.tool_lines import (
    ToolOutputs,
    diff_lines,
    picture_line,
    todo_lines,
    tool_line,
    verbose_lines,
)

_COMMAND = re.compile(r"( {0,2})(/[a-z][a-z-]*)(?= |$)")
# The groups of `/help`.
_HEADINGS = frozenset(command.group for command in (*COMMANDS, *SKIN_COMMANDS))
Section = Literal["", "said", "tools", "words", "thoughts", "notice"]
NOTICE_LINES = 6
# Endings that are always explained.
STOPPED = ("interrupted", "paused")


class Feed:
    """Prints what is final and keeps `live` up to date. Each session has its own feed."""

    def __init__(
        self, screen: ChatScreen, live: StatusPanel, display: DisplaySettings, root: str
    ) -> None:
        self._screen = screen
        self._live = live
        self.display = display
        self._root = root
        # The banner comes first.
        self._section: Section = "notice"
        self._waiting: dict[int, MessageReceived] = {}
        self._calls: dict[str, ToolCall] = {}
        # Calls whose changes the user saw before they approved them.
        self.previewed: set[str] = set()
        self._answer = self._new_answer()
        self._thoughts = ""
        self._streamed = False
        self._answered = False
        self._last_tool = ""
        self._at = 0.0
        self._failed_edits = FailedEdits(root)
        self._outputs = ToolOutputs()

    def show(self, record: Record) -> None:
        match record.event:
            case MessageReceived() as received:
                self._waiting[record.n] = received
                self._at = record.at
            case Withdrawn(n=n):
                self._waiting.pop(n, None)
            case TurnStarted(takes=takes) | Steered(takes=takes):
                self._live.busy = True
                for n in takes:
                    self._say(self._waiting.pop(n, None))
            case ModelCalled() if self._live.busy:  # auxiliary calls are not shown
                self._live.begin("thinking")
            case TextDelta(text=text):
                self._stream(text)
            case ReasoningDelta(text=text):
                self._think(text)
            case CallNamed(name=name):
                self._live.begin(self._translate("preparing {tool}", tool=one_line(name)))
            case Restarted():
                self._restart()
            case ReplyAdded() as reply:
                self._finish_reply(reply)
            case ToolStarted(call_id=call_id):
                if call := self._calls.get(call_id):
                    described = describe_call(call, root=self._root)
                    self._live.running[call_id] = RunningTool(described, self._live.clock())
            case ToolProgress(call_id=call_id, details=details) if details:
                if running := self._live.running.get(call_id):
                    running.tasks = todo_lines(details, self._screen.paint, self._width)
            case ToolProgress(call_id=call_id, text=text):
                if running := self._live.running.get(call_id):
                    running.output = one_line(text.rstrip().rpartition("\n")[2], 80)
            case ToolFinished() as finished:
                self._finish_tool(finished)
            case Notice(text=text, kind=kind):
                self.notice(text, warning=kind == "warn")
            case ModelSwitched(model=model, provider=provider):
                message = "The model is now {model} ({provider})."
                self.notice(self._translate(message, model=model, provider=provider))
            case TurnEnded() as ended:
                self._end_turn(ended)
            case _:
                pass
        self._live.queued = tuple(_typed_text(each) for _, each in self._withdrawable)

    def notice(self, text: str, *, warning: bool = False) -> None:
        lines = sanitize(self._translate(text)).split("\n")
        rows = [row for line in lines for row in wrap(line, self._width)]
        self._print(
            "notice", [self._screen.paint(row, "warn" if warning else "dim") for row in rows]
        )

    def put(self, text: str) -> None:
        """Print text as it is."""
        self._print("notice", text.split("\n"))

    def show_output(self, text: str) -> None:
        """Print the output of a command, wrapped."""
        lines, paint = text.split("\n"), self._screen.paint
        rows = [row for line in lines for row in wrap_columns(line, self._width)]
        self._print("notice", [_paint_command(row, paint) for row in rows])

    def report(self, text: str, *, is_answer: bool) -> None:
        """The result of background work: an answer, or output, which is not reformatted."""
        rows = text.split("\n")
        if is_answer:
            answer = self._new_answer()
            rows = answer.feed(text, self._width) + answer.finish(self._width)
        self._print("notice", rows, apart=True)

    def echo(self, text: str) -> None:
        """A typed line that is not part of the conversation."""
        if self._screen.was_echoed(text):
            self._section = "said"
            return
        self._print(
            "said", [self._screen.paint(f"{self._sign} {sanitize(text)}", "dim")], apart=True
        )

    def add_queued(self, waiting: dict[int, MessageReceived]) -> None:
        """Queued messages of an earlier run."""
        self._waiting |= waiting

    @property
    def newest_waiting(self) -> tuple[int, str] | None:
        """The record number and text of the last message that can still be withdrawn."""
        if not self._withdrawable:
            return None
        n, received = self._withdrawable[-1]
        return n, _typed_text(received)

    @property
    def _withdrawable(self) -> list[tuple[int, MessageReceived]]:
        waiting = self._waiting.items()
        return [
            (n, each) for n, each in waiting if each.message.origin == "user" and not each.steer
        ]

    def add_calls(self, calls: tuple[ToolCall, ...]) -> None:
        """Tool calls of an earlier run that are about to be answered."""
        self._calls |= {call.id: call for call in calls}

    def find_call(self, call_id: str) -> ToolCall | None:
        """An unfinished tool call."""
        return self._calls.get(call_id)

    @property
    def _translate(self) -> Translator:
        return self._screen.paint.say

    @property
    def _sign(self) -> str:
        return self._screen.paint.skin.branding.prompt_symbol

    @property
    def _width(self) -> int:
        return max(10, self._screen.width - 1)

    def _new_answer(self) -> StreamedReply:
        return StreamedReply(self.display.final_response_markdown, self._screen.paint)

    def _say(self, received: MessageReceived | None) -> None:
        if received is None or received.message.origin == "hermes":
            return
        paint, message = self._screen.paint, received.message
        text = typed_text(message.text)
        if self._screen.was_echoed(text):
            self._section = "said"
            return
        lines = sanitize(self._screen.fold(user_text(text))).rstrip("\n").split("\n")
        if message.origin != "user":
            self._show_notification(lines)
            return
        signs = [self._sign, *(" " * cells(self._sign) for _ in lines[1:])]
        rows = zip(signs, lines, strict=True)
        echoed = [f"{paint(sign, 'prompt')} {paint(line, 'bold')}" for sign, line in rows]
        if self.display.timestamps:
            moment = time.strftime(self.display.timestamp_format, time.localtime(self._at))
            echoed[0] += paint(f"  {sanitize(moment)}", "dim")
        self._print("said", echoed, apart=True)

    def _show_notification(self, lines: list[str]) -> None:
        """A message that is not from the user, such as the end of a background process."""
        most = {"all": NOTICE_LINES, "concise": 1, "off": 0}
        shown = lines[: most[self.display.background_process_notifications]]
        if shown and len(shown) < len(lines):
            shown = [*shown, "…"]
        rows = [row for line in shown for row in wrap(f"⚙ {line}", self._width, hang="  ")]
        self._print("said", [self._screen.paint(row, "dim") for row in rows], apart=True)

    @property
    def _streams(self) -> bool:
        """Whether text is shown while it arrives. Without interim messages, only the end of a reply
        tells whether it is shown."""
        return self.display.streaming and self.display.interim_assistant_messages

    def _stream(self, text: str) -> None:
        self._streamed = True
        if not self._streams:
            self._live.begin("writing")
            return
        self._end_thoughts()
        rows = self._answer.feed(text, self._width)
        if self._answer.begun:
            self._live.activity = ""
            self._live.answer = self._answer
            self._print("words", rows)

    def _think(self, text: str) -> None:
        if not self.display.show_reasoning:
            self._live.begin("thinking")
            return
        *lines, self._thoughts = (self._thoughts + text).split("\n")
        # A long line is printed row by row.
        rest, width = sanitize(self._thoughts), self._thought_width
        row, used = first_row(rest, width)
        while used < len(rest):
            lines.append(row)
            self._thoughts = rest = rest[used:]
            row, used = first_row(rest, width)
        self._print_thoughts(lines)

    @property
    def _thought_sign(self) -> str:
        skin = self._screen.paint.skin
        return self._translate("thought:") if skin.words else skin.tool_prefix

    @property
    def _thought_width(self) -> int:
        return max(10, self._width - cells(self._thought_sign) - 1)

    def _end_thoughts(self) -> None:
        if self._thoughts:
            self._print_thoughts([self._thoughts])
            self._thoughts = ""

    def _print_thoughts(self, lines: list[str]) -> None:
        paint, bar, width = self._screen.paint, self._thought_sign, self._thought_width
        rows = [row for line in lines for row in wrap(sanitize(line), width)]
        self._print("thoughts", [paint(f"{bar} {row}".rstrip(), "dim") for row in rows])

    def _restart(self) -> None:
        """The streamed text is void but stays on the screen, so a notice says so."""
        was_shown = self._answer.begun and self._streams
        self._answer, self._live.answer = self._new_answer(), None
        self._thoughts = ""
        if was_shown:
            self.notice("The answer was cut off and starts again.", warning=True)
        self._live.begin("thinking")

    def _finish_reply(self, reply: ReplyAdded) -> None:
        self._end_thoughts()
        message = reply.message
        if not self._streamed and self.display.show_reasoning and message.reasoning:
            self._print_thoughts(message.reasoning.split("\n"))
        hidden = message.calls and not self.display.interim_assistant_messages
        if not (self._streamed and self._streams) and not hidden:
            self._print("words", self._answer.feed(message.text, self._width))
        self._end_answer()
        self._answered = bool(message.text.strip())
        self.add_calls(message.calls)

    def _end_answer(self) -> None:
        self._print("words", self._answer.finish(self._width))
        self._answer, self._live.answer, self._streamed = self._new_answer(), None, False
        self._live.activity = ""

    def _finish_tool(self, finished: ToolFinished) -> None:
        result, paint = finished.result, self._screen.paint
        self._live.running.pop(result.call_id, None)
        call = self._calls.pop(result.call_id, None) or ToolCall(
            id=result.call_id, name=result.name
        )
        self._failed_edits.note(call, result)
        progress = self.display.tool_progress
        repeated = progress == "new" and result.name == self._last_tool and not result.failed
        self._last_tool = result.name
        shown = [picture_line(image, paint)] if (image := image_of(result)) else []
        if progress == "off" or repeated:
            self._print("tools", shown)
            return
        described = describe_call(call, result.details, root=self._root)
        preview = self.display.tool_preview_length
        rows = [tool_line(described, result, finished.seconds, paint, self._width, preview=preview)]
        self._outputs.add(described, result)
        if result.name in ("plan", "todo"):
            rows += todo_lines(result.details, paint, self._width)
        if progress == "verbose":
            rows += verbose_lines(call, result, paint, self._width)
        elif self._shows_diff(result) and (diff := result.details.get("diff")):
            is_new = not result.details.get("files_modified")
            rows += diff_lines(diff, paint, self._width, is_new=is_new)
        self._print("tools", rows + shown)

    def show_tool_output(self) -> None:
        """Print the output of the last tool call; called again, of the one before it."""
        rows = self._outputs.next_rows(self._screen.paint, self._width)
        if rows:
            self._print("tools", rows)
        else:
            self.notice("There is no more tool output in this session.")

    def _shows_diff(self, result: ToolResult) -> bool:
        return self.display.inline_diffs and result.call_id not in self.previewed

    def _end_turn(self, ended: TurnEnded) -> None:
        self._end_thoughts()
        self._end_answer()
        self._live.busy = False
        self._live.running.clear()
        self._last_tool = ""
        message = explain_ending(ended, answered=self._answered, say=self._translate)
        if self._answered and self.display.file_mutation_verifier:
            message = message or self._failed_edits.warning()
        self._answered, self._failed_edits = False, FailedEdits(self._root)
        if is_error(ended):
            lines = f"error: {sanitize(message)}".split("\n")
            rows = [row for line in lines for row in wrap(line, self._width, hang="  ")]
            head = self._screen.paint("error:", "error")
            self._print("notice", [head + rows[0].removeprefix("error:"), *rows[1:]])
        elif message and (self.display.turn_completion_explainer or ended.reason in STOPPED):
            self.notice(message, warning=True)

    def _print(self, section: Section, rows: list[str], *, apart: bool = False) -> None:
        """An empty row separates sections, except tools after a user message."""
        changed = section != self._section and (self._section, section) != ("said", "tools")
        if not rows and not (section == "words" and changed and self._live.answer):
            return
        gap = [""] if self._section and (changed or apart) else []
        self._section = section
        if gap or rows:
            self._screen.show("\n".join((*gap, *rows)))


def _paint_command(row: str, paint: Paint) -> str:
    """A row of help with its command or heading in colour."""
    if command := _COMMAND.match(row):
        return f"{command[1]}{paint(command[2], 'accent')}{row[command.end() :]}"
    return paint(row, "bold") if row in _HEADINGS else row


def _typed_text(received: MessageReceived) -> str:
    return user_text(typed_text(received.message.text))
