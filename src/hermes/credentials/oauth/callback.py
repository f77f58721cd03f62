"""The page on this machine that a browser comes back to after a login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from hermes.codec.values import Value

PATH = "/callback"
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Hermes</title>"
    "<p>{words}</p><p>You can close this page.</p>"
)
_LONGEST_LINE = 8_192
_SECONDS = 10.0


class Returned(Value):
    """What came back. `state` proves that it answers our question and not somebody else's."""

    code: str = ""
    state: str = ""
    error: str = ""

    def __repr__(self) -> str:
        return f"Returned(error={self.error!r})"


def read_returned(text: str) -> Returned:
    """From an address with its query, or from `code#state` as pages show it."""
    text = text.strip()
    if "=" in text:
        place = urlsplit(text if "?" in text else f"?{text}")
        return read_query(place.query)
    code, _, state = text.partition("#")
    return Returned(code=code, state=state)


def read_query(query: str) -> Returned:
    first = {name: values[0] for name, values in parse_qs(query).items()}
    error = first.get("error_description") or first.get("error", "")
    return Returned(code=first.get("code", ""), state=first.get("state", ""), error=error)


class Callback:
    """Listens on loopback, on a port that the system chooses, for one answer."""

    def __init__(self, port: int, returned: asyncio.Future[Returned], state: str) -> None:
        self.url = f"http://127.0.0.1:{port}{PATH}"
        self.returned = returned
        self._state = state

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                line = (await reader.readuntil(b"\n"))[:_LONGEST_LINE].decode("latin-1")
                while (await reader.readuntil(b"\n")).strip():
                    pass
            writer.write(self._answer(line))
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()

    def _answer(self, line: str) -> bytes:
        target = line.split(" ")[1] if line.startswith("GET ") else ""
        place = urlsplit(target)
        found = read_query(place.query) if place.path == PATH else Returned()
        if not found.code and not found.error:
            return _response("404 Not Found", "There is nothing here.")
        # Any page that the browser shows can send it here: without the state it is ignored.
        if found.state != self._state:
            return _response("400 Bad Request", "This does not belong to the login under way.")
        if not self.returned.done():
            self.returned.set_result(found)
        words = "The login was refused." if found.error else "You are logged in."
        return _response("200 OK", words)


@asynccontextmanager
async def listening(state: str) -> AsyncIterator[Callback]:
    returned: asyncio.Future[Returned] = asyncio.get_running_loop().create_future()
    server: asyncio.Server | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await callback.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    callback = Callback(server.sockets[0].getsockname()[1], returned, state)
    async with server:
        yield callback


def _response(status: str, words: str) -> bytes:
    page = _PAGE.format(words=words).encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(page)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + page
