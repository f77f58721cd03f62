"""Ends a bracketed paste whose end marker was lost, which would swallow all further keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress

TORN_SECONDS = 1.0
END = "\x1b[201~"


def end_unterminated_pastes(app: Application[Any], *, after_seconds: float = TORN_SECONDS) -> None:
    keyboard = app.input
    if not isinstance(keyboard, Vt100Input):
        return

    def ended() -> None:
        app.key_processor.feed_multiple(keyboard.flush_keys())
        app.key_processor.process_keys()

    keyboard.vt100_parser = _PasteTimeoutParser(
        keyboard.vt100_parser.feed_key_callback, ended, after_seconds
    )


class _PasteTimeoutParser(Vt100Parser):
    def __init__(
        self,
        feed_key_callback: Callable[[KeyPress], None],
        ended: Callable[[], None],
        after_seconds: float,
    ) -> None:
        super().__init__(feed_key_callback)
        self._ended = ended
        self._after_seconds = after_seconds
        self._silence: asyncio.TimerHandle | None = None

    def feed(self, data: str) -> None:
        super().feed(data)
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if self._in_bracketed_paste:
            loop = asyncio.get_running_loop()
            self._silence = loop.call_later(self._after_seconds, self._end)

    def _end(self) -> None:
        self._silence = None
        if self._in_bracketed_paste:
            self.feed(END)
            self._ended()
