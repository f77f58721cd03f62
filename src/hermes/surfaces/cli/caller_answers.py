"""Answers of the program that runs `hermes -z --json --ask`: a line of JSON on stdin for each
question."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import Value
from hermes.core.commands import Answer
from hermes.core.errors import HermesError
from hermes.core.events import ApprovalAsked, QuestionAsked, Record
from hermes.core.session import Session

FORM = '{"id": "…", "answer": "once"}'
_READ_BYTES = 65_536


class CallerAnswer(Value, forbid_unknown_fields=True):
    """`answer` is one of the scopes in the question or "deny", or the text that answers a question
    of a tool. `reason` reaches the model after "deny"."""

    id: str
    answer: str
    reason: str = ""


class CallerAnswers:
    """Passes the lines on stdin to a session. When stdin ends, nobody can answer any more: open and
    later questions are denied."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[str, ApprovalAsked | QuestionAsked] = {}
        self._has_ended = False

    async def follow(self, events: AsyncIterator[Record]) -> None:
        """Note what is asked."""
        async for record in events:
            event = record.event
            if isinstance(event, ApprovalAsked | QuestionAsked):
                self._open[event.id] = event
                if self._has_ended:
                    await self._deny_all()

    async def read_lines(self) -> None:
        lines = _start_reading()
        while (line := await lines.get()) is not None:
            if line.strip():
                await self._pass_on(line)
        self._has_ended = True
        await self._deny_all()

    async def _pass_on(self, line: bytes) -> None:
        try:
            given = decode(CallerAnswer, line)
        except DecodeError as error:
            print(f"An answer on stdin is invalid ({error}); write {FORM}.", file=sys.stderr)
            return
        if self._open.pop(given.id, None) is None:
            print(f"No open question has the id {given.id!r}; nothing was done.", file=sys.stderr)
            return
        await self._send(Answer(id=given.id, text=given.answer, by="caller", reason=given.reason))

    async def _deny_all(self) -> None:
        asked, self._open = tuple(self._open.values()), {}
        for event in asked:
            text = "deny" if isinstance(event, ApprovalAsked) else ""
            await self._send(Answer(id=event.id, text=text, by="caller", reason="stdin ended"))

    async def _send(self, answer: Answer) -> None:
        try:
            await self._session.send(answer)
        except HermesError as error:
            print(f"An answer on stdin was not accepted: {error}", file=sys.stderr)


def _start_reading() -> asyncio.Queue[bytes | None]:
    """The lines of stdin; None is the end."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(line: bytes | None) -> None:
        # The loop may be closed before the caller ends stdin.
        if not loop.is_closed():
            loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        rest = b""
        # Not through sys.stdin: a thread that waits there holds a lock that the exit needs.
        while data := os.read(0, _READ_BYTES):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                put(line)
        put(rest)
        put(None)

    threading.Thread(target=read, name="hermes-answers", daemon=True).start()
    return lines
