"""What a chat shows while a turn works: the typing indicator, tool calls, and how long it takes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.commands.formatting import format_elapsed, one_line
from hermes.commands.tool_calls import describe_call
from hermes.core.concurrency import Wakeup
from hermes.core.errors import PlatformError
from hermes.core.messages import ToolCall
from hermes.core.world import World
from hermes.surfaces.gateway.options import DisplayOptions, ToolProgressLevel
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.platform import Address, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform

TYPING_SECONDS = 4.0
# "Still working" appears after so long, and counts on as often.
NOTICE_SECONDS = 180.0
MAX_LINES = 30
VERBOSE_CHARS = 1_000


class TurnProgress:
    """The display of one turn. Nothing here survives a crash; the answer does."""

    def __init__(
        self,
        outbox: Outbox,
        live: LivePlatform,
        to: Address,
        world: World,
        *,
        level: ToolProgressLevel,
        edit_seconds: float,
        log_file: Path,
    ) -> None:
        self._outbox = outbox
        self._live = live
        self._to = to
        self._world = world
        self._level = level
        self._edit_seconds = edit_seconds
        self._log_file = log_file
        self._lines: list[str] = []
        self._bubble = ""
        self._shown = ""
        self._bubbles: list[str] = []
        self._last_tool = ""
        self._news = Wakeup()
        self._tasks: list[asyncio.Task[None]] = []
        self.is_waiting = False
        self.last_activity = world.clock.monotonic()
        self.doing = "waiting for the model"

    @property
    def _display(self) -> DisplayOptions:
        return self._live.options.display

    def start(self) -> None:
        works = [self._show_bubbles()]
        if self._live.options.typing_indicator and self._live.manifest.abilities.typing_seconds:
            works.append(self._show_typing())
        if self._display.long_running_notices:
            works.append(self._count_minutes())
        self._tasks = [asyncio.ensure_future(work) for work in works]

    async def stop(self, *, is_done: bool) -> None:
        """`is_done`: the turn was successful."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._flush()
        if is_done and self._display.deletes_progress:
            await self._delete_bubbles()

    def note_activity(self, doing: str = "") -> None:
        self.last_activity = self._world.clock.monotonic()
        self.doing = doing or self.doing

    def add_call(self, call: ToolCall) -> None:
        """A tool call has started."""
        self.note_activity(f"running {call.name}")
        line = self._line(call)
        if self._level == "log":
            self._log(line)
        is_new = call.name != self._last_tool
        self._last_tool = call.name
        if self._level in ("all", "verbose") or (self._level == "new" and is_new):
            self._lines.append(line)
            self._news.set()

    def end_group(self) -> None:
        """A text follows; later calls are shown below it."""
        if self._bubble:
            self._lines, self._bubble, self._shown = [], "", ""

    def _line(self, call: ToolCall) -> str:
        described = describe_call(call)
        if self._level == "verbose":
            preview = one_line(_arguments(call.arguments), VERBOSE_CHARS)
        else:
            preview = one_line(described.detail, self._display.tool_preview_chars)
        emoji = described.emoji or "⚙️"
        return f"{emoji} {call.name}: {preview}" if preview else f"{emoji} {call.name}"

    def _log(self, line: str) -> None:
        with suppress(OSError):
            self._log_file.parent.mkdir(parents=True, exist_ok=True)
            with self._log_file.open("a", encoding="utf-8") as file:
                file.write(f"{self._world.clock.now():.0f} {self._to.chat_id} {line}\n")

    async def _show_bubbles(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._flush()
            await self._world.clock.sleep(self._edit_seconds)

    async def _flush(self) -> None:
        if not self._display.groups_progress:
            lines, self._lines = self._lines, []
            for line in lines:
                self._bubbles.append(await self._post(line))
            return
        text = "\n".join(self._lines[-MAX_LINES:])
        if not text or text == self._shown:
            return
        self._shown = text
        if self._bubble and self._live.manifest.abilities.edits:
            with suppress(PlatformError):
                await self._outbox.show(self._to, self._bubble, Post(text=text, is_plain=True))
            return
        if self._bubble:
            text = self._lines[-1]
        self._bubble = await self._post(text)
        self._bubbles.append(self._bubble)

    async def _post(self, text: str) -> str:
        post = Post(text=text, is_plain=True, is_silent=True)
        return await self._outbox.post_unrecorded(self._to, post)

    async def _delete_bubbles(self) -> None:
        if self._live.manifest.abilities.deletes:
            for message_id in filter(None, self._bubbles):
                with suppress(PlatformError):
                    await self._live.adapter.delete(self._to, message_id)

    async def _show_typing(self) -> None:
        seconds = self._live.manifest.abilities.typing_seconds or TYPING_SECONDS
        while True:
            if not self.is_waiting:
                with suppress(PlatformError):
                    await self._live.adapter.show_typing(self._to)
            await self._world.clock.sleep(seconds)

    async def _count_minutes(self) -> None:
        begun, message_id = self._world.clock.monotonic(), ""
        while True:
            await self._world.clock.sleep(NOTICE_SECONDS)
            passed = format_elapsed(self._world.clock.monotonic() - begun)
            text = f"Still working ({passed}): {self.doing}."
            if message_id and self._live.manifest.abilities.edits:
                with suppress(PlatformError):
                    await self._outbox.show(self._to, message_id, Post(text=text, is_plain=True))
            else:
                message_id = await self._post(text)


def _arguments(arguments: JsonObject) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
