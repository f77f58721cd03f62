"""Follows a running child session: activity, live log, progress lines and questions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from hermes.core.events import (
    ApprovalAsked,
    QuestionAsked,
    Record,
    ReplyAdded,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from hermes.core.messages import ToolCall
from hermes.core.world import Clock

PREVIEW_CHARS = 70
LOG_CHARS = 2_000
CHECK_SECONDS = 5.0

OnLine = Callable[[str], None]
OnQuestion = Callable[[ApprovalAsked | QuestionAsked], None]


def preview(call: ToolCall) -> str:
    """Describe a call in one line: the tool, and its first text argument."""
    texts = (str(value) for value in call.arguments.values() if isinstance(value, str))
    return shorten(f"{call.name} {next(texts, '')}", PREVIEW_CHARS)


def shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class ChildMonitor:
    """A listener of one child session (`Session.attach`). `on_line` gets what it does now,
    `on_question` what it asks."""

    def __init__(
        self, clock: Clock, log: Path | None, on_line: OnLine, on_question: OnQuestion
    ) -> None:
        self._clock = clock
        self._log = log
        self._on_line = on_line
        self._on_question = on_question
        self._calls: dict[str, ToolCall] = {}
        self._running: set[str] = set()
        self._questions = 0
        self.active_at = clock.monotonic()
        self.tool_calls = 0

    @property
    def is_in_tool(self) -> bool:
        return bool(self._running)

    def push(self, record: Record) -> None:
        self.active_at = self._clock.monotonic()
        match record.event:
            case ReplyAdded(message=message):
                self._calls = {call.id: call for call in message.calls}
                if message.text.strip():
                    self._write(record, message.text.strip())
            case ToolStarted(call_id=call_id):
                self._running.add(call_id)
                self.tool_calls += 1
                if call := self._calls.get(call_id):
                    self._on_line(preview(call))
                    self._write(record, f"→ {preview(call)}")
            case ToolFinished(result=result):
                self._running.discard(result.call_id)
                sign = "✗" if result.failed else "✓"
                self._write(record, f"{sign} {result.name}: {result.text}")
            case ApprovalAsked() | QuestionAsked() as asked:
                self._on_question(asked)
                self._write(record, "? waits for an answer")
            case TurnEnded(reason=reason, error=error):
                self._write(record, f"turn ended: {reason} {error}".rstrip())
            case _:
                pass

    def close(self) -> None:
        """The session is closed; nothing follows."""

    async def wait_until_idle_for(self, seconds: float, seconds_in_tool: float) -> None:
        """Return when the child session has shown no activity for this long."""
        while True:
            limit = seconds_in_tool if self.is_in_tool else seconds
            left = self.active_at + limit - self._clock.monotonic()
            if left <= 0:
                return
            # Another limit may apply soon: a tool starts or ends.
            await self._clock.sleep(min(left, seconds, seconds_in_tool, CHECK_SECONDS))

    def _write(self, record: Record, text: str) -> None:
        if self._log is None:
            return
        stamp = time.strftime("%H:%M:%S", time.localtime(record.at))
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(f"{stamp} {text[:LOG_CHARS]}\n")
        except OSError:
            # The log is only a convenience; the journal has everything.
            self._log = None


class ProgressTree:
    """The newest line of every child session of a call, shown as a tree."""

    def __init__(self, show: Callable[[str], None], count: int) -> None:
        self._show = show
        self._lines = ["waiting"] * count

    def update(self, index: int, line: str) -> None:
        self._lines[index] = line
        rows = [
            f"{'└─' if n == len(self._lines) - 1 else '├─'} [{n + 1}] {each}"
            for n, each in enumerate(self._lines)
        ]
        # Screens with one line show the last one: the change comes last.
        changed = rows.pop(index)
        self._show("\n".join((*rows, changed)))
