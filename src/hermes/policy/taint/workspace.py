"""A workspace that reports all writes to a taint tracker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes.core.delegating import (
    DelegatingProcesses,
    DelegatingWorkspace,
    RunOptions,
    SpawnOptions,
)
from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, Processes, ProcessInfo, Workspace
from hermes.policy.patterns import regex
from hermes.policy.taint.tracker import TaintTracker

if TYPE_CHECKING:
    from typing import Unpack

# The command leaves a process running.
_BACKGROUND = regex(r"(?<![&>|])&(?![&>])|\b(?:nohup|setsid|disown|coproc|daemon(?:ize)?)\b")


class TaintTrackedWorkspace(DelegatingWorkspace):
    def __init__(self, inner: Workspace, tracker: TaintTracker) -> None:
        super().__init__(inner)
        self._tracker = tracker

    @property
    def processes(self) -> Processes:
        return _TrackedProcesses(self._inner.processes, self.root, self._tracker)

    async def write_bytes(self, path: str, data: bytes) -> None:
        if not self._tracker.has_untrusted_text:
            await self._inner.write_bytes(path, data)
            await self._tracker.clear((path,))
            return
        async with self._tracker.track_write(self.root, path, data):
            await self._inner.write_bytes(path, data)

    async def delete(self, path: str) -> None:
        await self._inner.delete(path)
        await self._tracker.clear((path,))

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        if (names := self._tracker.written_paths(effect)) is None:
            async with self._tracker.track_if_tainted(self.root, effect):
                return await self._inner.run(effect, **options)
        stays = _BACKGROUND.search(effect.script) is not None
        async with self._tracker.track_command(self.root, names, look=True, stays=stays):
            return await self._inner.run(effect, **options)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        if (names := self._tracker.written_paths(effect)) is None:
            return await self._inner.spawn(effect, **options)
        # A short process may write and end before it can be tracked.
        async with self._tracker.track_command(self.root, names, look=True):
            info = await self._inner.spawn(effect, **options)
            await self._tracker.track_process(self.root, info, names)
            return info

    async def close(self) -> None:
        await self._tracker.finish(self.root)
        await self._inner.close()
        await self._tracker.close()


class _TrackedProcesses(DelegatingProcesses):
    def __init__(self, inner: Processes, root: str, tracker: TaintTracker) -> None:
        super().__init__(inner)
        self._root = root
        self._tracker = tracker

    async def poll(self, process_id: str) -> ProcessInfo:
        return await self._track(await self._inner.poll(process_id))

    async def wait(self, process_id: str, *, timeout: float, stop: asyncio.Event) -> ProcessInfo:
        return await self._track(await self._inner.wait(process_id, timeout=timeout, stop=stop))

    async def _track(self, info: ProcessInfo) -> ProcessInfo:
        await self._tracker.on_process_poll(self._root, info)
        return info

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        """Write input to a process. It may come from untrusted text, and the process may write it
        to files."""
        if self._tracker.has_untrusted_text:
            for info in await self._inner.list():
                if info.id == process_id:
                    await self._tracker.track_process(self._root, info)
        return await self._inner.write(process_id, data)
