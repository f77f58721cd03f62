"""Servers that draw, as their protocols say: real HTTP on loopback, answers made by each test."""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


def png(width: int = 2, height: int = 2, *, padding: int = 0) -> bytes:
    """A real picture; with `padding` as large as one likes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\x00" + b"\x80" * width for _ in range(height))
    filling = chunk(b"teXt", b"x" * padding) if padding else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + filling
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PNG = png()
JPEG = b"\xff\xd8\xff\xe0" + b"\x00\x10JFIF\x00" + b"\x00" * 32
B64 = base64.b64encode(PNG).decode()
PAGE = b"<!doctype html><html><body>Sign in to continue</body></html>"


class Asked:
    """One request as it came."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        place = urlsplit(target)
        self.method = method
        self.path = place.path
        self.query = {key: values[0] for key, values in parse_qs(place.query).items()}
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Reply:
    def __init__(
        self,
        body: object = None,
        status: int = 200,
        *,
        kind: str = "",
        headers: dict[str, str] | None = None,
        delay: float = 0.0,
    ) -> None:
        raw = isinstance(body, bytes)
        self.body: bytes = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status = status
        self.kind = kind or ("image/png" if raw else "application/json")
        self.headers = headers or {}
        self.delay = delay


Answer = Callable[[Asked], Reply] | Reply


class Fake:
    """`routes` by "METHOD /path"; `asked` is everything that came, in order."""

    def __init__(self) -> None:
        self.routes: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.port = 0
        self.ending = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(self, route: str, *answers: Answer) -> None:
        """One answer for ever, or several, of which the last stays."""
        left = list(answers)

        def reply(asked: Asked) -> Reply:
            found = left.pop(0) if len(left) > 1 else left[0]
            return found if isinstance(found, Reply) else found(asked)

        self.routes[route] = reply

    def paths(self) -> list[str]:
        return [f"{each.method} {each.path}" for each in self.asked]

    def answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        found = self.routes.get(f"{asked.method} {asked.path}")
        if found is None:
            return Reply({"error": "no such path"}, 404)
        return found if isinstance(found, Reply) else found(asked)


@contextmanager
def faking() -> Iterator[Fake]:
    fake = Fake()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = fake.answer(Asked(self.command, self.path, headers, self.rfile.read(length)))
            if reply.delay:
                fake.ending.wait(reply.delay)
            try:
                self.send_response(reply.status)
                self.send_header("content-type", reply.kind)
                self.send_header("content-length", str(len(reply.body)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)
            except OSError:
                self.close_connection = True

        do_GET = do_POST = do_PUT = _serve

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()


def form_fields(asked: Asked) -> dict[str, list[bytes]]:
    """The parts of a form by name, as a strict reader takes them."""
    boundary = asked.headers["content-type"].partition("boundary=")[2].encode()
    found: dict[str, list[bytes]] = {}
    for part in asked.body.split(b"--" + boundary)[1:-1]:
        head, _, value = part.strip(b"\r\n").partition(b"\r\n\r\n")
        name = head.split(b'name="')[1].split(b'"')[0].decode()
        found.setdefault(name, []).append(value)
    assert asked.body.endswith(b"--" + boundary + b"--\r\n")
    return found


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
