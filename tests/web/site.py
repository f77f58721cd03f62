"""A real web server of a few pages, which remembers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping

Page = bytes | Callable[[bytes], bytes]


def page(body: bytes, status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode() + body


def moved(location: str, status: int = 302) -> bytes:
    return page(b"", status, location=location)


class Site:
    """`asked` are whole requests, head and body. A page of b"" is never answered."""

    def __init__(
        self, pages: Mapping[str, Page] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.pages: dict[str, Page] = dict(pages or {})
        self._tls = tls
        self.asked: list[bytes] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Site:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            request = head + await reader.readexactly(length)
            self.asked.append(request)
            path = head.split(b" ")[1].decode().partition("?")[0]
            found = self.pages.get(path, page(b"no such page", 404))
            answer = found if isinstance(found, bytes) else found(request)
            if not answer:
                await asyncio.sleep(60)
            writer.write(answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
