"""Answers the tool calls of a running script: over a Unix socket, or through files where the script
cannot reach one."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import NotFound, ToolError
from hermes.core.tools import ToolContext

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
MOST_BYTES = 5_000_000
# Tools whose failure a script handles itself.
_RETURNS_FAILURES = ("terminal",)


class RpcRequest(Value):
    id: int
    tool: str
    token: str = ""
    args: JsonObject = {}


class RpcAnswer(Value):
    id: int
    ok: bool
    text: str = ""
    error: str = ""
    details: JsonObject = {}


class RpcCalls:
    """The calls of one script. Each becomes an inner call of `execute_code`; `parameters` are the
    tools that it may call, with their parameters."""

    def __init__(
        self, ctx: ToolContext, parameters: Mapping[str, Collection[str]], max_calls: int
    ) -> None:
        self.made = 0
        self.token = secrets.token_hex(16)
        self._ctx = ctx
        self._parameters = parameters
        self._max_calls = max_calls

    async def answer(self, line: bytes) -> RpcAnswer:
        try:
            request = decode(RpcRequest, line)
        except DecodeError as error:
            return RpcAnswer(id=0, ok=False, error=f"The request cannot be read: {error}")
        if not hmac.compare_digest(request.token.encode(), self.token.encode()):
            return RpcAnswer(id=request.id, ok=False, error="The token is wrong.")
        if problem := self._find_problem(request):
            return RpcAnswer(id=request.id, ok=False, error=problem)
        self.made += 1
        result = await self._ctx.call_tool(request.tool, request.args, key=str(self.made))
        if result.failed and (result.denied or request.tool not in _RETURNS_FAILURES):
            return RpcAnswer(id=request.id, ok=False, error=result.text)
        return RpcAnswer(id=request.id, ok=True, text=result.text, details=result.details)

    def _find_problem(self, request: RpcRequest) -> str:
        known = self._parameters.get(request.tool)
        if known is None:
            names = ", ".join(self._parameters)
            return f"Scripts cannot call {request.tool!r}; there are: {names}."
        if unknown := [name for name in request.args if name not in known]:
            return f"{request.tool} has no parameter {unknown[0]!r} in scripts."
        if self.made >= self._max_calls:
            return f"A script may make at most {self._max_calls} tool calls."
        return ""


@asynccontextmanager
async def serve_socket(calls: RpcCalls, folder: Path) -> AsyncIterator[str]:
    """Answer calls on a socket in this folder while the context is open; yield its path."""
    path = folder / f"rpc-{secrets.token_hex(4)}.sock"
    folder_fd = os.open(folder, os.O_RDONLY)
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            while line := await reader.readline():
                writer.write(encode(await calls.answer(line)) + b"\n")
                await writer.drain()
        except (OSError, ValueError) as error:
            log.warning("a script's connection broke", extra={"why": str(error)})
        finally:
            connections.discard(task)
            writer.close()

    # Paths of sockets are short; a path by way of the descriptor always fits.
    server = await asyncio.start_unix_server(
        serve, f"/proc/self/fd/{folder_fd}/{path.name}", limit=MOST_BYTES
    )
    path.chmod(0o600)
    try:
        yield str(path)
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        path.unlink(missing_ok=True)
        os.close(folder_fd)


async def serve_files(calls: RpcCalls, ctx: ToolContext, folder: str, script_id: str) -> None:
    """Answer calls that the script writes to this folder of its machine, until cancelled."""
    done: set[str] = set()
    running: set[asyncio.Task[None]] = set()

    async def serve(path: str, name: str) -> None:
        answer = await calls.answer(await ctx.workspace.read_bytes(path))
        await ctx.workspace.scratch(f"rpc-{script_id}-{name}", encode(answer))

    try:
        while True:
            with contextlib.suppress(ToolError, NotFound, OSError):
                for info in await ctx.workspace.list_folder(folder):
                    name = info.path.rpartition("/")[2]
                    if name.endswith(".json") and name not in done:
                        done.add(name)
                        task = asyncio.ensure_future(serve(info.path, name))
                        running.add(task)
                        task.add_done_callback(running.discard)
            await asyncio.sleep(POLL_SECONDS)
    finally:
        for task in tuple(running):
            task.cancel()
