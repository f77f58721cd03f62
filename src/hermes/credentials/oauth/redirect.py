"""A local HTTP server that receives the redirect of a browser login."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from hermes.codec.values import Value

PATH = "/callback"
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>Hermes</title>"
    "<p>{message}</p><p>You can close this page.</p>"
)
_LONGEST_LINE = 8_192
_SECONDS = 10.0
_PASTE_ATTEMPTS = 3


class BrowserScreen(Protocol):
    """Shows the page of a login to the user."""

    def show_page(self, url: str, *, paste: bool) -> None:
        """Ask the user to open `url`, and with `paste` to paste the resulting code."""
        ...

    async def read_pasted(self) -> str:
        """Return the pasted text. Never return if pasting is not possible."""
        ...

    def reject_pasted(self, why: str) -> None:
        """Say why the pasted text is not accepted, and ask for another."""
        ...


class RedirectResult(Value):
    """The result of a login in the browser; `state` ties it to our request."""

    code: str = ""
    state: str = ""
    issuer: str = ""
    error: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(error={self.error!r})"


def parse_redirect(text: str) -> RedirectResult:
    """Parse a pasted URL, query, or `code#state`."""
    text = text.strip()
    if "=" in text:
        parts = urlsplit(text if "?" in text else f"?{text}")
        return parse_query(parts.query)
    code, _, state = text.partition("#")
    return RedirectResult(code=code, state=state)


def parse_query(query: str) -> RedirectResult:
    first = {name: values[0] for name, values in parse_qs(query).items()}
    error = first.get("error_description") or first.get("error", "")
    return RedirectResult(
        code=first.get("code", ""),
        state=first.get("state", ""),
        issuer=first.get("iss", ""),
        error=error,
    )


class RedirectListener:
    """Waits for one redirect to `url`. Only an answer with `state` is accepted; `state` may be set
    after the server has started, when the authorization request is known."""

    def __init__(self, url: str = "", state: str = "") -> None:
        self.url = url
        self.state = state
        self._returned: asyncio.Future[RedirectResult] = asyncio.get_running_loop().create_future()

    async def wait(self, screen: BrowserScreen, seconds: float) -> RedirectResult:
        """Return the first of the redirect and the pasted text, with `error` set if no attempt has
        a code of this login; raise TimeoutError."""
        by_hand = asyncio.ensure_future(self._read_pasted(screen))
        try:
            async with asyncio.timeout(seconds):
                done, _ = await asyncio.wait(
                    (by_hand, self._returned), return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            by_hand.cancel()
            await asyncio.gather(by_hand, return_exceptions=True)
        return (self._returned if self._returned in done else by_hand).result()

    async def _read_pasted(self, screen: BrowserScreen) -> RedirectResult:
        for attempt in range(1, _PASTE_ATTEMPTS + 1):
            found = parse_redirect(await screen.read_pasted())
            if found.error or (found.code and self._is_ours(found)):
                return found
            why = "the code belongs to another login" if found.code else "there is no code"
            if attempt < _PASTE_ATTEMPTS:
                screen.reject_pasted(why)
        return RedirectResult(error=why)

    def _is_ours(self, result: RedirectResult) -> bool:
        return bool(self.state) and hmac.compare_digest(result.state.encode(), self.state.encode())

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
        parts = urlsplit(target)
        result = parse_query(parts.query) if parts.path == PATH else RedirectResult()
        if not result.code and not result.error:
            return _response("404 Not Found", "Not found.")
        # Any web page can send the browser here: without our state the request is ignored.
        if not self._is_ours(result):
            return _response("400 Bad Request", "This code belongs to another login.")
        if not self._returned.done():
            self._returned.set_result(result)
        message = "The login was refused." if result.error else "You are logged in."
        return _response("200 OK", message)


@asynccontextmanager
async def listen_for_redirect(
    state: str = "", *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[RedirectListener]:
    """Serve a callback at `host`; port 0 uses a free one."""
    callback = RedirectListener(state=state)
    async with await asyncio.start_server(callback.serve, host, port) as server:
        callback.url = f"http://{host}:{server.sockets[0].getsockname()[1]}{PATH}"
        yield callback


def _response(status: str, message: str) -> bytes:
    page = _PAGE.format(message=message).encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(page)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + page
