"""Supervises a plugin in its own process: starts on demand, stops it when it hangs or fills its
folder, restarts with delays and disables it after three crashes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.core.world import Clock
from hermes.plugins.cell import PluginSandbox
from hermes.plugins.link import PluginCallFailed, PluginLink, ProcessGone
from hermes.plugins.running import CallKind, PluginFault, call_facts
from hermes.plugins.serving import NO_CALLER, PluginCaller, PluginRequests

log = logging.getLogger(__name__)

PAUSES = (1.0, 4.0, 16.0)
MOST_CRASHES = 3
WINDOW_SECONDS = 600.0
POLITE_SECONDS = 0.5


class LivenessCheck(Value):
    """Interval of liveness checks and the time allowed for an answer."""

    every_seconds: float = 15.0
    patience_seconds: float = 30.0


DEFAULT_PULSE = LivenessCheck()


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
    """`make_cell` re-checks the files: ConfigError when they differ from the approved ones.
    `overfull` returns why its data folder is too large, or ""."""

    def __init__(
        self,
        name: str,
        make_cell: Callable[[], tuple[PluginSandbox, JsonObject]],
        serving: PluginRequests,
        clock: Clock,
        *,
        load_seconds: float,
        overfull: Callable[[], str] = lambda: "",
        pulse: LivenessCheck = DEFAULT_PULSE,
    ) -> None:
        self._overfull = overfull
        self._pulse = pulse
        self._watcher: asyncio.Task[None] | None = None
        self._name = name
        self._make_cell = make_cell
        self._serving = serving
        self._load_seconds = load_seconds
        self._strikes = CrashCounter(clock)
        self._starting = asyncio.Lock()
        self._link: PluginLink | None = None
        self._surface: Any = None
        self.protection = "not started"

    @property
    def given_up(self) -> bool:
        return self._strikes.out

    async def load(self) -> Any:
        await self._running()
        return self._surface

    async def call(
        self, kind: CallKind, name: str, given: Any, *, seconds: float, caller: PluginCaller
    ) -> Any:
        link = await self._running()
        message = {"kind": kind, "name": name, "given": given, "about": call_facts(caller)}
        try:
            async with asyncio.timeout(seconds or None):
                return await link.call(message, caller)
        except TimeoutError:
            await self._end(link)
            raise PluginFault(
                f"Plugin {self._name} did not answer within {seconds:g} s and was stopped."
            ) from None
        except ProcessGone:
            await self._end(link)
            words = link.why or f"crashed{_exit_text(link)}"
            raise PluginFault(f"Plugin {self._name} {words}.") from None
        except PluginCallFailed as error:
            raise PluginFault(f"Plugin {self._name}: {error}") from None

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
            if self._strikes.out:
                raise PluginFault(
                    f"Plugin {self._name} crashed {MOST_CRASHES} times and is disabled."
                )
            if pause := self._strikes.pause:
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
        """Stops a process that does not answer or has filled its folder."""
        while link.alive:
            await asyncio.sleep(self._pulse.every_seconds)
            why = await self._find_problem(link)
            if why and link.alive:
                log.warning("plugin stopped", extra={"plugin": self._name, "why": why})
                link.why = f"{why} and was stopped"
                link.kill()
                return

    async def _find_problem(self, link: PluginLink) -> str:
        message: JsonObject = {"kind": "ping", "name": "", "given": None, "about": {}}
        try:
            async with asyncio.timeout(self._pulse.patience_seconds):
                await link.call(message, NO_CALLER)
        except TimeoutError:
            return f"did not respond for {self._pulse.patience_seconds:g} s"
        except (ProcessGone, PluginCallFailed):
            return ""
        return await asyncio.to_thread(self._overfull)

    async def _start(self) -> PluginLink:
        try:
            cell, birth = await asyncio.to_thread(self._make_cell)
        except ConfigError as error:
            raise PluginFault(f"Plugin {self._name} does not run: {error}") from error
        self.protection = cell.protection
        link = await self._process(cell)
        try:
            async with asyncio.timeout(self._load_seconds or None):
                await link.open({**birth, "limits": cell.limits(), "secrets": cell.secrets()})
                message: JsonObject = {"kind": "load", "name": "", "given": None, "about": {}}
                self._surface = await link.call(message, NO_CALLER)
        except TimeoutError:
            await self._end(link)
            raise PluginFault(
                f"Plugin {self._name} did not load within {self._load_seconds:g} s."
            ) from None
        except ProcessGone:
            await self._end(link)
            raise PluginFault(
                f"Plugin {self._name} crashed at startup{_exit_text(link)}."
            ) from None
        except PluginCallFailed as error:
            await self._end(link)
            raise PluginFault(f"Plugin {self._name} cannot be loaded: {error}") from None
        except BaseException:
            await link.close()
            raise
        return link

    async def _process(self, cell: PluginSandbox) -> PluginLink:
        ours, theirs = socket.socketpair()
        try:
            pid = await asyncio.to_thread(cell.start, theirs.fileno())
        except OSError as error:
            ours.close()
            raise PluginFault(f"Plugin {self._name} cannot be started: {error}.") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        return PluginLink(pid, ours, self._serving.answer, after=cell.clear)

    async def _end(self, link: PluginLink) -> None:
        """Stops the link; counts one crash per process."""
        if self._link is link:
            self._link = None
        if not link.over:
            link.over = True
            self._strikes.count()
        await link.close()


def _exit_text(link: PluginLink) -> str:
    code = link.exit_code
    return f" (exit {code})" if code else ""
