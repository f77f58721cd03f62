"""The HTTP server of fake platforms: requests with their fields, faults, and a log of all calls."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from hermes.testing.connection import RawRequest, ServerConnection
from hermes.testing.platforms.faults import Fault


class UploadedFile(NamedTuple):
    """A file in a request."""

    name: str
    data: bytes


class Call(NamedTuple):
    """A request that arrived. `at` is monotonic."""

    name: str
    fields: dict[str, Any]
    at: float
    headers: dict[str, str]


class Reply(NamedTuple):
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"


class FakeHttpServer:
    """Answers requests on loopback. A fake derives from it and overrides `handle`."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.port = 0
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self._connections: set[ServerConnection] = set()
        self._arrived = asyncio.Event()
        self._work: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    @asynccontextmanager
    async def start(cls, *arguments: Any, **options: Any) -> AsyncIterator[Self]:
        """A server that listens within the block."""
        self = cls(*arguments, **options)
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: ServerConnection(self._serve, self._connections), "127.0.0.1", 0
        )
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            self.drop_connections()
            await self.close()

    async def close(self) -> None:
        """End background work."""
        for task in tuple(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def fail(self, call: str, *faults: Fault) -> None:
        """Let the next calls with this name fail, one per fault."""
        self._faults[call].extend(faults)

    def drop_connections(self) -> None:
        for connection in tuple(self._connections):
            connection.abort()

    def calls_of(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    async def wait_for_calls(self, name: str, count: int = 1, seconds: float = 20.0) -> list[Call]:
        """The calls with this name, once there are so many."""
        async with asyncio.timeout(seconds):
            while len(self.calls_of(name)) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.calls_of(name)

    def call_name(self, request: RawRequest) -> str:
        return urlsplit(request.path).path

    async def handle(self, name: str, fields: dict[str, Any], request: RawRequest) -> Reply:
        raise NotImplementedError

    def fault_reply(self, fault: Fault) -> Reply:
        """The response to a call that fails with a status."""
        raise NotImplementedError

    def run_in_background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def _serve(self, request: RawRequest, connection: ServerConnection) -> None:
        _ = connection.run(self._answer(request, connection))

    async def _answer(self, request: RawRequest, connection: ServerConnection) -> None:
        name, fields = self.call_name(request), read_fields(request)
        self.calls.append(Call(name, fields, time.monotonic(), request.headers))
        self._arrived.set()
        waiting = self._faults[name]
        fault = waiting.popleft() if waiting else None
        if fault is not None and fault.kind == "drop_before":
            connection.reset()
            return
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
        if fault is None or fault.kind in ("slow", "drop_after") or fault.has_effect:
            reply = await self.handle(name, fields, request)
        if fault is not None and fault.kind == "drop_after":
            connection.reset()
            return
        if fault is not None and fault.kind != "slow":
            reply = self.fault_reply(fault)
        head = (
            f"HTTP/1.1 {reply.status} .\r\nContent-Type: {reply.content_type}\r\n"
            f"Content-Length: {len(reply.body)}\r\n\r\n"
        )
        connection.write(head.encode() + reply.body)
        await connection.drain()
        connection.done(keep=request.headers.get("connection", "").lower() != "close")


def read_fields(request: RawRequest) -> dict[str, Any]:
    """The fields of the query and of a body in JSON, as a form, or as form data."""
    fields: dict[str, Any] = dict(parse_qsl(urlsplit(request.path).query, keep_blank_values=True))
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" and request.raw:
        body = json.loads(request.raw)
        fields |= body if isinstance(body, dict) else {"": body}
    elif kind == "application/x-www-form-urlencoded":
        fields |= dict(parse_qsl(request.raw.decode(), keep_blank_values=True))
    elif kind == "multipart/form-data":
        fields |= _read_form(request)
    return fields


def _read_form(request: RawRequest) -> dict[str, Any]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + request.raw)
    fields: dict[str, Any] = {}
    for part in message.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        file_name = part.get_filename()
        fields[name] = (
            data.decode() if file_name is None else UploadedFile(unquote(file_name), data)
        )
    return fields
