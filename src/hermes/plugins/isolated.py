"""Runs and supervises a plugin in its own process."""

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
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.core.world import Clock
from hermes.plugins.protocol import (
    NO_CALLER,
    CallKind,
    Denied,
    PluginCaller,
    PluginFault,
    PluginRequests,
)
from hermes.plugins.sandbox import PluginSandbox
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
    """The connection to the process of one plugin, which lives as long as the link. `answer` serves
    the plugin's requests; `after` cleans up."""

    def __init__(
        self, pid: int, ours: socket.socket, answer: AnswerRequest, after: Callable[[], None]
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

    async def open(self, start_message: JsonObject) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._ours, limit=MOST_BYTES)
        self._reading = asyncio.ensure_future(self._read(reader))
        self._send(start_message)

    async def call(self, message: JsonObject, caller: PluginCaller) -> Any:
        """Call the plugin. Raise ProcessGone, or PluginCallFailed with the plugin's error."""
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
        """Stop the process and its children, after `patience` seconds to exit."""
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
        tasks = [*self._asked, *((self._reading,) if self._reading else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._give_up()
        await asyncio.to_thread(self._after)

    def kill(self) -> None:
        """Kill the process group."""
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
        _, caller = self._waiting.get(message.get("within", 0), (None, None))
        params = message.get("params")
        arguments = params if isinstance(params, dict) else {}
        answer: JsonObject = {"answer": message["ask"]}
        try:
            answer["result"] = await self._answer(str(message.get("method")), arguments, caller)
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


PAUSES = (1.0, 4.0, 16.0)
MOST_CRASHES = 3
WINDOW_SECONDS = 600.0
POLITE_SECONDS = 0.5


class LivenessCheck(Value):
    """The interval of liveness checks and the time allowed for an answer."""

    every_seconds: float = 15.0
    patience_seconds: float = 30.0


class CrashCounter:
    """Recent crashes of a plugin and the resulting delay."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._crashes: list[float] = []

    @property
    def out(self) -> bool:
        return len(self._crashes) >= MOST_CRASHES

    @property
    def pause(self) -> float:
        """Returns the seconds until a restart is allowed."""
        if not self._crashes:
            return 0.0
        over = self._crashes[-1] + PAUSES[min(len(self._crashes), len(PAUSES)) - 1]
        return max(0.0, over - self._clock.monotonic())

    def count(self) -> None:
        now = self._clock.monotonic()
        self._crashes = [each for each in self._crashes if now - each < WINDOW_SECONDS] + [now]


class IsolatedPlugin:
    """A plugin that runs in a sandboxed process. `make_sandbox` checks the files again: ConfigError
    when they differ from the approved ones. `overfull` returns why its data folder is too large, or
    ""."""

    def __init__(
        self,
        name: str,
        make_sandbox: Callable[[], tuple[PluginSandbox, JsonObject]],
        serving: PluginRequests,
        clock: Clock,
        *,
        load_seconds: float,
        overfull: Callable[[], str],
        pulse: LivenessCheck,
    ) -> None:
        self._overfull = overfull
        self._pulse = pulse
        self._watcher: asyncio.Task[None] | None = None
        self._name = name
        self._make_sandbox = make_sandbox
        self._serving = serving
        self._load_seconds = load_seconds
        self._crashes = CrashCounter(clock)
        self._starting = asyncio.Lock()
        self._link: PluginLink | None = None
        self._surface: Any = None
        self.protection = "not started"

    @property
    def given_up(self) -> bool:
        return self._crashes.out

    async def load(self) -> Any:
        await self._running()
        return self._surface

    async def call(
        self, kind: CallKind, name: str, payload: Any, *, seconds: float, caller: PluginCaller
    ) -> Any:
        link = await self._running()
        message = {"kind": kind, "name": name, "given": payload, "about": caller.facts}
        try:
            async with asyncio.timeout(seconds or None):
                return await link.call(message, caller)
        except PluginCallFailed as error:
            raise PluginFault(f"Plugin {self._name}: {error}") from None
        except (TimeoutError, ProcessGone) as error:
            await self._end(link)
            why = link.why or f"crashed{_exit_text(link)}"
            if isinstance(error, TimeoutError):
                why = f"did not answer within {seconds:g} s and was stopped"
            raise PluginFault(f"Plugin {self._name} {why}.") from None

    async def close(self) -> None:
        async with self._starting:
            link, self._link = self._link, None
            if self._watcher is not None:
                self._watcher.cancel()
                await asyncio.gather(self._watcher, return_exceptions=True)
            if link is not None:
                await link.close(patience=POLITE_SECONDS)

    async def _running(self) -> PluginLink:
        async with self._starting:
            if self._link is not None and self._link.alive:
                return self._link
            if self._link is not None:
                # It exited between two calls.
                await self._end(self._link)
            if self._crashes.out:
                raise PluginFault(
                    f"Plugin {self._name} crashed {MOST_CRASHES} times and is disabled."
                )
            if pause := self._crashes.pause:
                raise PluginFault(
                    f"Plugin {self._name} crashed; it can be used again in {pause:.0f} s."
                )
            if why := await asyncio.to_thread(self._overfull):
                raise PluginFault(f"Plugin {self._name} {why}.")
            self._link = await self._start()
            if self._watcher is not None:
                self._watcher.cancel()
            self._watcher = asyncio.ensure_future(self._watch(self._link))
            return self._link

    async def _watch(self, link: PluginLink) -> None:
        """Stop a process that does not answer or whose data folder is full."""
        while link.alive:
            await asyncio.sleep(self._pulse.every_seconds)
            why = await self._find_problem(link)
            if why and link.alive:
                log.warning("plugin stopped", extra={"plugin": self._name, "why": why})
                link.why = f"{why} and was stopped"
                link.kill()
                return

    async def _find_problem(self, link: PluginLink) -> str:
        try:
            async with asyncio.timeout(self._pulse.patience_seconds):
                await link.call(_message("ping"), NO_CALLER)
        except TimeoutError:
            return f"did not respond for {self._pulse.patience_seconds:g} s"
        except (ProcessGone, PluginCallFailed):
            return ""
        return await asyncio.to_thread(self._overfull)

    async def _start(self) -> PluginLink:
        try:
            sandbox, start_message = await asyncio.to_thread(self._make_sandbox)
        except ConfigError as error:
            raise PluginFault(f"Plugin {self._name} does not run: {error}") from error
        self.protection = sandbox.protection
        link = await self._process(sandbox)
        try:
            async with asyncio.timeout(self._load_seconds or None):
                await link.open({**start_message, "limits": sandbox.limits()})
                self._surface = await link.call(_message("load"), NO_CALLER)
        except (TimeoutError, ProcessGone, PluginCallFailed) as error:
            await self._end(link)
            why = f"cannot be loaded: {error}"
            if isinstance(error, TimeoutError):
                why = f"did not load within {self._load_seconds:g} s."
            elif isinstance(error, ProcessGone):
                why = f"crashed at startup{_exit_text(link)}."
            raise PluginFault(f"Plugin {self._name} {why}") from None
        except BaseException:
            await link.close()
            raise
        return link

    async def _process(self, sandbox: PluginSandbox) -> PluginLink:
        ours, theirs = socket.socketpair()
        try:
            pid = await asyncio.to_thread(sandbox.start, theirs.fileno())
        except OSError as error:
            ours.close()
            raise PluginFault(f"Plugin {self._name} cannot be started: {error}.") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        return PluginLink(pid, ours, self._serving.answer, sandbox.clear)

    async def _end(self, link: PluginLink) -> None:
        """Stop the link; count one crash per process."""
        if self._link is link:
            self._link = None
        if not link.over:
            link.over = True
            self._crashes.count()
        await link.close()


def _message(kind: str) -> JsonObject:
    return {"kind": kind, "name": "", "given": None, "about": {}}


def _exit_text(link: PluginLink) -> str:
    return f" (exit {link.exit_code})" if link.exit_code else ""
