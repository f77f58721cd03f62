"""A workspace that reads and writes text files through the editor, so that unsaved buffers count,
and runs commands in its terminals if configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp import RequestError
from acp.interfaces import Client
from acp.schema import ClientCapabilities

from hermes.core.effects import RunCommand
from hermes.core.ports import CommandResult, Workspace
from hermes.core.wrapped import DelegatingWorkspace, RunOptions
from hermes.surfaces.acp.terminals import EditorTerminals

if TYPE_CHECKING:
    from typing import Unpack


class EditorFiles(DelegatingWorkspace):
    """Uses the editor for text files, and for commands if there are `terminals`. Falls back to the
    inner workspace when the editor does not know a file or refuses a path outside its project."""

    def __init__(
        self,
        inner: Workspace,
        client: Client,
        session_id: str,
        able: ClientCapabilities,
        terminals: EditorTerminals | None = None,
    ) -> None:
        super().__init__(inner)
        self._client = client
        self._session_id = session_id
        self._terminals = terminals
        self._reads = bool(able.fs and able.fs.read_text_file)
        self._writes = bool(able.fs and able.fs.write_text_file)

    async def read_bytes(self, path: str) -> bytes:
        data = await self._inner.read_bytes(path)
        if not self._reads or not _is_text(data):
            return data
        try:
            held = await self._client.read_text_file(self._session_id, path)
        except RequestError:
            return data
        return held.content.encode()

    async def write_bytes(self, path: str, data: bytes) -> None:
        if self._writes and _is_text(data):
            try:
                await self._client.write_text_file(self._session_id, path, data.decode())
            except RequestError:
                pass
            else:
                return
        await self._inner.write_bytes(path, data)

    async def run(self, effect: RunCommand, **options: Unpack[RunOptions]) -> CommandResult:
        if self._terminals is None or options.get("pty"):
            return await self._inner.run(effect, **options)
        return await self._terminals.run(
            effect,
            timeout=options["timeout"],
            stop=options["stop"],
            max_bytes=options["max_bytes"],
            on_output=options.get("on_output"),
        )


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeError:
        return False
