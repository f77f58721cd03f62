"""A workspace that uses the files and terminals of the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from acp import RequestError
from acp.interfaces import Client
from acp.schema import ClientCapabilities, TerminalExitStatus

from hermes.core.delegating import DelegatingWorkspace, RunOptions
from hermes.core.effects import RunCommand
from hermes.core.errors import ToolError
from hermes.core.ports import CommandResult, Workspace

if TYPE_CHECKING:
    from typing import Unpack

LOOK_SECONDS = 0.3
PATIENCE_SECONDS = 5.0
KILLED = 137


class _Running:
    """A running command; `output` is its output so far."""

    def __init__(
        self, client: Client, session_id: str, id: str, on_output: Callable[[str], None] | None
    ) -> None:
        self.output = ""
        self.has_ended = False
        self._client = client
        self._where = session_id, id
        self._on_output = on_output or (lambda _: None)

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait until the command ends or `stop` is set."""
        while not self.has_ended and not stop.is_set():
            await self._look()
            if not self.has_ended:
                await asyncio.sleep(LOOK_SECONDS)

    async def release(self) -> TerminalExitStatus | None:
        """Kill and release the terminal. Returns the exit status if known."""
        ended = self.has_ended
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if not ended:
                    await self._client.kill_terminal(*self._where)
                return await self._look()
        except TimeoutError:
            return None
        finally:
            self.has_ended = ended
            await self._client.release_terminal(*self._where)

    async def _look(self) -> TerminalExitStatus | None:
        now = await self._client.terminal_output(*self._where)
        before, self.output = self.output, now.output
        # The editor cut off the beginning, so only the end can be shown.
        if now.output.startswith(before) and len(now.output) > len(before):
            self._on_output(now.output[len(before) :])
        self.has_ended = now.exit_status is not None
        return now.exit_status


class EditorFiles(DelegatingWorkspace):
    """Uses the editor for text files, and with `runs_commands` for commands. Falls back to the
    inner workspace when the editor does not know a file or refuses a path outside its project."""

    def __init__(
        self,
        inner: Workspace,
        client: Client,
        session_id: str,
        able: ClientCapabilities,
        *,
        runs_commands: bool,
    ) -> None:
        super().__init__(inner)
        self._client = client
        self._session_id = session_id
        self._runs_commands = runs_commands
        self._reads = bool(able.fs and able.fs.read_text_file)
        self._writes = bool(able.fs and able.fs.write_text_file)

    async def read_bytes(self, path: str) -> bytes:
        data = await self._inner.read_bytes(path)
        if self._reads and _is_text(data):
            with suppress(RequestError):
                shown = await self._client.read_text_file(self._session_id, path)
                return shown.content.encode()
        return data

    async def write_bytes(self, path: str, data: bytes) -> None:
        if self._writes and _is_text(data):
            with suppress(RequestError):
                await self._client.write_text_file(self._session_id, path, data.decode())
                return
        await self._inner.write_bytes(path, data)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        """Each command gets its own terminal and shell, so `cd` does not affect the next command.
        Commands run without a sandbox, like the editor's own. Raises ToolError when the editor
        opens no terminal; nothing ran then."""
        if not self._runs_commands or options.get("pty"):
            return await self._inner.run(effect, **options)
        try:
            made = await self._client.create_terminal(
                self._session_id,
                "bash",
                args=["-c", effect.script],
                cwd=effect.cwd,
                output_byte_limit=options["max_bytes"],
            )
        except RequestError as error:
            message = f"The editor opens no terminal, so nothing was run: {error}."
            raise ToolError(message) from error
        stop, on_output = options["stop"], options.get("on_output")
        running = _Running(self._client, self._session_id, made.terminal_id, on_output)
        try:
            async with asyncio.timeout(options["timeout"]) as limit:
                await running.wait(stop)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            status = await running.release()
        return CommandResult(
            output=running.output,
            exit_code=KILLED if status is None or status.exit_code is None else status.exit_code,
            cwd=effect.cwd,
            total_bytes=len(running.output.encode()),
            timed_out=limit.expired(),
            interrupted=stop.is_set() and not running.has_ended,
        )


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeError:
        return False
