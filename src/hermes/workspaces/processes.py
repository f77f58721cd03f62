"""The background processes of one session: started, watched, and adopted by a later Hermes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

from hermes.codec.values import Value, replace
from hermes.core.concurrency import wait_for_first
from hermes.core.effects import RunCommand
from hermes.core.errors import NotFound, ToolError
from hermes.core.ports import ProcessInfo, ProcessNotice
from hermes.core.world import World
from hermes.workspaces.background import BackgroundProcess, ProcessFolder, ProcessRecord
from hermes.workspaces.notices import NoticeLimit, NoticeQueue, OutputWatch
from hermes.workspaces.runner import ANYWHERE, CommandRequest
from hermes.workspaces.shell import Shell
from hermes.workspaces.shell_state import ShellState

LOOK_SECONDS = 0.25
# A slow remote machine reports the end of a process late.
GRACE_SECONDS = 5.0
PREVIEW_CHARACTERS = 200
# How long an ended process stays in the list, with its end reported or not.
REPORTED_SECONDS = 30 * 60
UNREPORTED_SECONDS = 24 * 60 * 60


class ProcessLimits(Value):
    """How many processes a session may have, and how long a write waits for its reader."""

    processes: int = 64
    input_seconds: float = 5.0


class ProcessKeeper(Protocol):
    """Starts processes that outlive Hermes, and reconnects to them. Their output and exit code
    arrive in their folder, wherever they run."""

    async def start(
        self, command: CommandRequest, state: ShellState, folder: ProcessFolder
    ) -> tuple[int, str]:
        """Return its pid and identity. Raise OSError, ValueError or ToolError."""
        ...

    async def find(self, record: ProcessRecord, folder: ProcessFolder) -> ProcessRecord:
        """Return the record with its pid, if the process runs but the pid was never recorded."""
        ...

    def follow(
        self, record: ProcessRecord, folder: ProcessFolder, ended: Callable[[int | None], None]
    ) -> Callable[[], None] | None: ...

    async def write(self, record: ProcessRecord, folder: ProcessFolder, raw: bytes) -> None: ...

    async def end_input(self, record: ProcessRecord, folder: ProcessFolder) -> None: ...

    async def kill(self, record: ProcessRecord, folder: ProcessFolder) -> bool:
        """Kill the whole tree; False when the pid belongs to another process by now."""
        ...

    async def remove(self, record: ProcessRecord, folder: ProcessFolder) -> None:
        """Remove its remote files."""
        ...


class SessionProcesses:
    """Implements the port. `folder` holds one folder per process; processes of an earlier Hermes
    are adopted at the first call."""

    def __init__(
        self,
        folder: Path,
        *,
        shell: Shell,
        keeper: ProcessKeeper,
        world: World,
        limits: ProcessLimits | None = None,
    ) -> None:
        self._folder = folder
        self._shell = shell
        self._keeper = keeper
        self._world = world
        self._limits = limits or ProcessLimits()
        self._processes: dict[str, BackgroundProcess] = {}
        self._overall = NoticeLimit()
        self._notices = NoticeQueue()
        self._watching: asyncio.Task[None] | None = None
        self._adopting = asyncio.Lock()
        self._adopted = False

    async def spawn(
        self,
        effect: RunCommand,
        *,
        notify: bool = False,
        watch: tuple[str, ...] = (),
        pty: bool = False,
    ) -> ProcessInfo:
        await self._adopt_all()
        await self._enforce_limit()
        cwd, state = await self._shell.current_state(effect.cwd)
        process_id = self._world.new_id("proc")
        folder = ProcessFolder(self._folder / process_id)
        record = ProcessRecord(
            id=process_id,
            command=effect.script,
            cwd=cwd,
            started_at=self._world.clock.now(),
            notify=notify,
            watch=watch,
        )
        try:
            # Recorded first, so that it is found again whenever Hermes dies.
            folder.make(record)
            command = CommandRequest(
                script=effect.script,
                cwd=cwd,
                timeout=0,
                pty=pty,
                unconfined=ANYWHERE in effect.grants,
            )
            pid, identity = await self._keeper.start(command, state, folder)
        except (OSError, ValueError) as error:
            folder.remove()
            raise ToolError(f"The process cannot be started: {error}.") from error
        except BaseException:
            folder.remove()
            raise
        self._world.kill_point("process.spawned")
        record = replace(record, pid=pid, identity=identity)
        folder.write(record)
        return self._follow(record, folder).info()

    async def list(self) -> tuple[ProcessInfo, ...]:
        await self._adopt_all()
        await self._forget_old()
        return tuple(p.info(p.log.tail(PREVIEW_CHARACTERS)) for p in self._processes.values())

    async def poll(self, process_id: str) -> ProcessInfo:
        process = await self._find(process_id)
        text = process.read_new_output()
        return self._mark_reported(process).info(text)

    async def log(self, process_id: str, *, offset: int, limit: int) -> ProcessInfo:
        process = await self._find(process_id)
        lines = process.log.lines()
        start = offset if offset >= 0 else max(0, len(lines) + offset)
        text = "\n".join(lines[start : start + limit])
        return process.info(text, total_lines=len(lines))

    async def wait(self, process_id: str, *, timeout: float, stop: asyncio.Event) -> ProcessInfo:
        process = await self._find(process_id)
        ended = asyncio.ensure_future(process.ended.wait())
        try:
            await wait_for_first(ended, timeout=timeout, stop=stop)
        finally:
            ended.cancel()
        return await self.poll(process_id)

    async def write(self, process_id: str, data: str) -> ProcessInfo:
        process = await self._open_for_input(process_id)
        raw = data.encode("utf-8", "replace")
        try:
            async with asyncio.timeout(self._limits.input_seconds):
                await self._keeper.write(process.record, process.folder, raw)
        except (TimeoutError, BrokenPipeError) as error:
            raise ToolError(
                f"{process_id} does not read its input; part of the data was not sent."
            ) from error
        return process.info()

    async def close(self, process_id: str) -> ProcessInfo:
        process = await self._open_for_input(process_id)
        await self._keeper.end_input(process.record, process.folder)
        process.update(input_closed=True)
        return process.info()

    async def kill(self, process_id: str) -> ProcessInfo:
        process = await self._find(process_id)
        if process.running and await self._keeper.kill(process.record, process.folder):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await process.ended.wait()
            if process.running:
                process.mark_ended(128 + signal.SIGKILL)
            elif process.record.exit_code is None:
                process.update(exit_code=128 + signal.SIGKILL)
        return self._mark_reported(process).info()

    async def notices(self) -> AsyncIterator[ProcessNotice]:
        await self._adopt_all()
        async for notice in self._notices.stream():
            yield notice
            # Marked only now: a reader that stopped in between gets it again, under the same key.
            if notice.key == _ended_key(notice.process_id):
                process = self._processes.get(notice.process_id)
                if process and not process.record.told:
                    process.update(told=True)

    @property
    def any_running(self) -> bool:
        return any(process.running for process in self._processes.values())

    async def release(self) -> None:
        """Stop watching the processes; they run on."""
        if self._watching:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        for process in self._processes.values():
            process.release()
        self._processes.clear()
        self._adopted = False

    async def _find(self, process_id: str) -> BackgroundProcess:
        await self._adopt_all()
        if found := self._processes.get(process_id):
            return found
        raise NotFound(f"No process has the id {process_id}.", near=tuple(self._processes))

    async def _open_for_input(self, process_id: str) -> BackgroundProcess:
        process = await self._find(process_id)
        if not process.running:
            raise ToolError(f"{process_id} has ended; it takes no input.")
        if process.record.input_closed:
            raise ToolError(f"The input of {process_id} is closed.")
        return process

    async def _adopt_all(self) -> None:
        """Adopt what an earlier Hermes left, running or ended."""
        if self._adopted:
            return
        async with self._adopting:
            known = self._processes.keys()
            paths = [*self._folder.iterdir()] if self._folder.is_dir() else []
            folders = [ProcessFolder(path) for path in paths if path.name not in known]
            found = [(record, folder) for folder in folders if (record := folder.read())]
            for record, folder in sorted(found, key=lambda pair: pair[0].started_at):
                self._follow(await self._keeper.find(record, folder), folder)
            self._adopted = True

    def _follow(self, record: ProcessRecord, folder: ProcessFolder) -> BackgroundProcess:
        watch = OutputWatch(record.watch, self._overall)
        process = BackgroundProcess(record, folder, watch, self._world.clock, self._notices)
        self._processes[record.id] = process
        process.begin(self._keeper.follow)

        async def watch_output() -> None:
            """Check watched words and long logs while anything runs."""
            while running := [p for p in self._processes.values() if p.running]:
                for each in running:
                    each.trim()
                    each.check_output()
                await self._world.clock.sleep(LOOK_SECONDS)

        if process.running and not (self._watching and not self._watching.done()):
            self._watching = asyncio.create_task(watch_output(), name="background processes")
        return process

    def _mark_reported(self, process: BackgroundProcess) -> BackgroundProcess:
        """Drop the notice of an end that the caller has already seen."""
        if not process.running and not process.record.told:
            process.update(told=True)
            self._notices.drop(_ended_key(process.record.id))
        return process

    async def _enforce_limit(self) -> None:
        await self._forget_old()
        most = self._limits.processes
        if len(self._processes) < most:
            return
        finished = [p for p in self._processes.values() if not p.running]
        if not finished:
            raise ToolError(f"{most} processes are running. Kill one first.")
        await self._forget(min(finished, key=lambda p: (not p.record.told, p.record.ended_at or 0)))

    async def _forget_old(self) -> None:
        now = self._world.clock.now()
        for process in [p for p in self._processes.values() if not p.running]:
            age = now - (process.record.ended_at or now)
            told = process.record.told or not process.record.notify
            if age > (REPORTED_SECONDS if told else UNREPORTED_SECONDS):
                await self._forget(process)

    async def _forget(self, process: BackgroundProcess) -> None:
        del self._processes[process.record.id]
        self._notices.drop(_ended_key(process.record.id))
        await self._keeper.remove(process.record, process.folder)
        process.folder.remove()


def _ended_key(process_id: str) -> str:
    return f"{process_id}:ended"
