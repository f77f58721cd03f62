"""A workspace in which whatever may write files is seen by a witness."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from hermes.core.delegating import (
    DelegatingProcesses,
    DelegatingWorkspace,
    RunOptions,
    SpawnOptions,
)
from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, Processes, ProcessInfo, Workspace
from hermes.policy.taint.sight import TaintTracker

if TYPE_CHECKING:
    from typing import Unpack

# A command leaves something behind in the shell that runs on.
_LEFT = re.compile(r"(?<![&>|])&(?![&>])|\b(?:nohup|setsid|disown|coproc|daemon(?:ize)?)\b")


class TaintTrackedWorkspace(DelegatingWorkspace):
    """The same workspace with a witness."""

    def __init__(self, inner: Workspace, witness: TaintTracker) -> None:
        super().__init__(inner)
        self._witness = witness

    @property
    def processes(self) -> Processes:
        return _TrackedProcesses(self._inner.processes, self.root, self._witness)

    async def write_bytes(self, path: str, data: bytes) -> None:
        if not self._witness.has_untrusted_text:
            await self._inner.write_bytes(path, data)
            await self._witness.clear((path,))
            return
        async with self._witness.track_write(self.root, path, data):
            await self._inner.write_bytes(path, data)

    async def delete(self, path: str) -> None:
        await self._inner.delete(path)
        await self._witness.clear((path,))

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        if (names := self._witness.written_paths(effect)) is None:
            return await self._inner.run(effect, **options)
        stays = _LEFT.search(effect.script) is not None
        async with self._witness.track_command(self.root, names, look=True, stays=stays):
            return await self._inner.run(effect, **options)

    async def spawn(self, effect: RunCommand, **options: Unpack[SpawnOptions]) -> ProcessInfo:
        if (names := self._witness.written_paths(effect)) is None:
            return await self._inner.spawn(effect, **options)
        async with self._witness.track_command(self.root, names):
            info = await self._inner.spawn(effect, **options)
            await self._witness.track_process(self.root, info, names)
            return info

    async def close(self) -> None:
        await self._witness.finish(self.root)
        await self._inner.close()
        await self._witness.close()


class _TrackedProcesses(DelegatingProcesses):
    def __init__(self, inner: Processes, root: str, witness: TaintTracker) -> None:
        super().__init__(inner)
        self._root = root
        self._witness = witness

    async def poll(self, process_id: str) -> ProcessInfo:
        return await self._track(await self._inner.poll(process_id))

    async def wait(self, process_id: str, *, timeout: float, stop: asyncio.Event) -> ProcessInfo:
        return await self._track(await self._inner.wait(process_id, timeout=timeout, stop=stop))

    async def _track(self, info: ProcessInfo) -> ProcessInfo:
        await self._witness.on_process_poll(self._root, info)
        return info

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        """What a stranger says to a program, the program may write down."""
        if self._witness.has_untrusted_text:
            for info in await self._inner.list():
                if info.id == process_id:
                    await self._witness.track_process(self._root, info)
        return await self._inner.write(process_id, data)
