"""A small real HTTP server on loopback: one function answers every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Asked:
    """A request that arrived."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        place = urlsplit(target)
        self.method = method
        self.path = unquote(place.path)
        self.query = {name: values[0] for name, values in parse_qs(place.query).items()}
        self.headers = headers
        self.body = body

    @property
    def fields(self) -> dict[str, str]:
        """Of a form or of a JSON object."""
        if self.headers.get("content-type", "").startswith("application/json"):
            return {name: str(value) for name, value in json.loads(self.body).items()}
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "").partition(" ")[2]


class Said:
    """The answer to it, given after `delay` seconds."""

    def __init__(
        self,
        status: int,
        body: Any = "",
        headers: dict[str, str] | None = None,
        kind: str = "",
        delay: float = 0.0,
    ) -> None:
        is_text = isinstance(body, str)
        self.status = status
        self.delay = delay
        text = body if is_text or isinstance(body, bytes) else json.dumps(body)
        self.body = text if isinstance(text, bytes) else text.encode()
        self.headers = {"content-type": kind or ("text/plain" if is_text else "application/json")}
        self.headers |= headers or {}


Answer = Callable[[Asked], Said]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """The address of a server that answers this way."""
    open_now: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            while asked := await _read(reader):
                said = answer(asked)
                await asyncio.sleep(said.delay)
                writer.write(_bytes(said))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            open_now.discard(writer)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in open_now:
            writer.transport.abort()
        await asyncio.sleep(0)


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    line = await reader.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin-1").split(" ")
    headers = {}
    while (row := (await reader.readline()).decode("latin-1").strip()) != "":
        name, _, value = row.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body)


def _bytes(said: Said) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in said.headers.items())
    return (
        f"HTTP/1.1 {said.status} X\r\n{head}content-length: {len(said.body)}\r\n\r\n".encode()
        + said.body
    )
