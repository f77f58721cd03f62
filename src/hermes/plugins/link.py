"""The host side of the connection to a plugin process: JSON lines with size limits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.plugins.serving import Denied, PluginCaller
from hermes.workspaces.child import ExitWatch

log = logging.getLogger(__name__)

# Slightly more than the plugin side allows, for the envelope.
MOST_BYTES = 1_100_000
MOST_QUESTIONS = 16

AnswerRequest = Callable[[str, JsonObject, PluginCaller | None], Awaitable[Any]]


class ProcessGone(Exception):
    """The process has exited or violated the protocol."""


class PluginCallFailed(Exception):
    """The plugin raised an error with this text."""


class PluginLink:
    """`answer` serves the plugin's requests; `after` cleans up. The process lives as long as the
    link."""

    def __init__(
        self,
        pid: int,
        ours: socket.socket,
        answer: AnswerRequest,
        *,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._pid = pid
        self._ours = ours
        self._answer = answer
        self._after = after
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, tuple[asyncio.Future[Any], PluginCaller]] = {}
        self._asked: set[asyncio.Task[None]] = set()
        self._last = 0
        # Cancelled calls whose answers may still arrive.
        self._abandoned: set[int] = set()
        self._ended = asyncio.get_running_loop().create_future()
        self._watch = ExitWatch(pid, self._on_exit)
        self.exit_code: int | None = None
        # Set when its end has been counted.
        self.over = False
        # Reason of a deliberate stop, for callers that still wait.
        self.why = ""

    @property
    def alive(self) -> bool:
        return not self._ended.done()

    async def open(self, birth: JsonObject) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._ours, limit=MOST_BYTES)
        self._reading = asyncio.ensure_future(self._read(reader))
        self._send(birth)

    async def call(self, message: JsonObject, caller: PluginCaller) -> Any:
        """Raises Gone, or Failed with the plugin's error."""
        if not self.alive:
            raise ProcessGone
        self._last += 1
        number = self._last
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (answer, caller)
        try:
            self._send({"id": number, **message})
            return await answer
        finally:
            self._waiting.pop(number, None)
            if not answer.done() or answer.cancelled():
                self._abandoned.add(number)

    async def close(self, *, patience: float = 0.0) -> None:
        """Stops the process and its children, after `patience` seconds to exit."""
        if self._writer is not None:
            with contextlib.suppress(OSError):
                if patience and self.alive:
                    # Closing both directions would end the reader, which kills the process.
                    self._writer.write_eof()
                    await asyncio.wait((self._ended,), timeout=patience)
                self._writer.close()
        self.kill()
        if self.alive:
            await asyncio.wait((self._ended,), timeout=5)
        for task in (*self._asked, *((self._reading,) if self._reading else ())):
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        self._give_up()
        await asyncio.to_thread(self._after)

    def kill(self) -> None:
        """Kills the process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)

    def _send(self, message: JsonObject) -> None:
        assert self._writer is not None
        try:
            self._writer.write(encode(message) + b"\n")
        except OSError as error:
            raise ProcessGone from error

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._on_line(line)
        except (ValueError, OSError, DecodeError):
            log.warning("a plugin violated the protocol", extra={"pid": self._pid})
        finally:
            # A closed or invalid stream makes the process useless.
            self.kill()
            self._give_up()

    def _on_line(self, line: bytes) -> None:
        message = decode(dict, line)
        if "ask" in message:
            if len(self._asked) >= MOST_QUESTIONS:
                raise ValueError("too many concurrent requests")
            task = asyncio.ensure_future(self._serve(message))
            self._asked.add(task)
            task.add_done_callback(self._asked.discard)
            return
        number = message.get("id", 0)
        waiting = self._waiting.get(number)
        if waiting is None and number in self._abandoned:
            self._abandoned.discard(number)
            return
        if waiting is None or waiting[0].done():
            raise ValueError("an answer to an unknown request")
        if "error" in message:
            waiting[0].set_exception(PluginCallFailed(str(message["error"])[:2_000]))
        else:
            waiting[0].set_result(message.get("result"))

    async def _serve(self, message: JsonObject) -> None:
        held = self._waiting.get(message.get("within", 0))
        params = message.get("params")
        answer: JsonObject = {"answer": message["ask"]}
        try:
            given = params if isinstance(params, dict) else {}
            caller = held[1] if held else None
            answer["result"] = await self._answer(str(message.get("method")), given, caller)
        except Denied as denied:
            answer["error"] = str(denied)
        except Exception:
            log.exception("a plugin request failed")
            answer["error"] = "The request failed."
        with contextlib.suppress(ProcessGone):
            self._send(answer)

    def _on_exit(self, code: int | None) -> None:
        self.exit_code = code
        if not self._ended.done():
            self._ended.set_result(code)
        self._give_up()

    def _give_up(self) -> None:
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(ProcessGone())
