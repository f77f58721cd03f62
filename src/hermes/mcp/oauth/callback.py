"""Receives the OAuth redirect: a local page, or a pasted URL."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from hermes.codec.values import Value
from hermes.core.errors import HermesError, UsageError

PATH = "/callback"


class AuthorizationReply(Value):
    """The authorization code with state and issuer."""

    code: str
    state: str = ""
    issuer: str = ""


class LoginCallback:
    """A pending login. Replies with another state are rejected and the wait continues."""

    def __init__(self) -> None:
        self.state = ""
        self._returned: asyncio.Future[AuthorizationReply] = (
            asyncio.get_running_loop().create_future()
        )

    async def wait(
        self, pasted: Callable[[], Awaitable[str]], seconds: float
    ) -> AuthorizationReply:
        """Waits for the browser or the pasted URL; HermesError."""
        reading = asyncio.ensure_future(self._read(pasted))
        try:
            async with asyncio.timeout(seconds):
                return await self._returned
        except TimeoutError:
            raise HermesError(f"No login within {seconds:g} s; try again.") from None
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def receive(self, query: str) -> str:
        """Handles a reply; returns the error or ""."""
        given = {name: values[0] for name, values in parse_qs(query).items()}
        if self.state and given.get("state", "") != self.state:
            return "This reply belongs to another login."
        if error := given.get("error"):
            words = given.get("error_description") or error
            self._settle(HermesError(f"The login was refused: {words}."))
            return f"The login was refused: {words}."
        if "code" not in given:
            return "This reply contains no code."
        self._settle(
            AuthorizationReply(
                code=given["code"], state=given.get("state", ""), issuer=given.get("iss", "")
            )
        )
        return ""

    def _settle(self, outcome: AuthorizationReply | HermesError) -> None:
        if self._returned.done():
            return
        if isinstance(outcome, HermesError):
            self._returned.set_exception(outcome)
        else:
            self._returned.set_result(outcome)

    async def _read(self, pasted: Callable[[], Awaitable[str]]) -> None:
        while True:
            line = (await pasted()).strip()
            query = urlsplit(line).query if "://" in line else line
            if wrong := self.receive(query):
                self._settle(UsageError(wrong)) if "code" in query else None


@asynccontextmanager
async def listening(host: str, port: int) -> AsyncIterator[tuple[LoginCallback, int]]:
    """Starts the local page; yields callback and port."""
    callback = LoginCallback()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ValueError):
            line = (await reader.readline()).decode("latin-1").split()
            while (await reader.readline()).strip():
                pass
            status, words = _answer(callback, line)
            body = words.encode()
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, host, port)
    async with server:
        yield callback, int(server.sockets[0].getsockname()[1])


def _answer(callback: LoginCallback, line: list[str]) -> tuple[str, str]:
    if len(line) < 2 or line[0] != "GET":
        return "405 Method Not Allowed", "Only GET."
    parts = urlsplit(line[1])
    if parts.path != PATH:
        return "404 Not Found", "Nothing here."
    if wrong := callback.receive(parts.query):
        return "400 Bad Request", wrong
    return "200 OK", "Logged in. You can close this page and go back to Hermes."
