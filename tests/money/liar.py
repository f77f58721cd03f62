"""A priced server that reports any usage at all, and keeps its own account of what it sent."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from hermes.codec.tokens import tokens_of_size

PRICE_INPUT, PRICE_OUTPUT = 3.0, 15.0
LONGEST = 2_000
ANSWER = "The report says that the costs of the north wing were lower than planned. " * 60


class LyingServer:
    """Answers every request with a long text. `usage` is the JSON text of the report; "" leaves it
    out. `before_answer` is called for each request."""

    def __init__(self, usage: str = "", before_answer: Callable[[int], None] | None = None) -> None:
        self.usage = usage
        self.before_answer = before_answer
        self.requests = 0
        self.real_cost = 0.0
        self.worst_call = 0.0

    async def __aenter__(self) -> LyingServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
        if not body:  # a question about the server
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            writer.close()
            return
        self.requests += 1
        if self.before_answer is not None:
            self.before_answer(self.requests)
        answer = self._answer(json.loads(body))
        cost = self._charge(len(body), len(answer))
        self.real_cost += cost
        self.worst_call = max(self.worst_call, cost)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        )
        writer.write(_event({"choices": [{"index": 0, "delta": {"content": answer}}]}))
        writer.write(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        if self.usage:
            writer.write(b'data: {"choices": [], "usage": ' + self.usage.encode() + b"}\n\n")
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    def _answer(self, request: dict[str, object]) -> str:
        limit = request.get("max_tokens", LONGEST)
        assert isinstance(limit, int)
        return ANSWER[: limit * 4]

    def _charge(self, sent: int, received: int) -> float:
        tokens = tokens_of_size(sent) * PRICE_INPUT + tokens_of_size(received) * PRICE_OUTPUT
        return tokens / 1_000_000


def _event(data: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def write_settings(home: Path, server: LyingServer, budget: str) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    priced = f"price_input: {PRICE_INPUT}, price_output: {PRICE_OUTPUT}"
    (home / "config.yaml").write_text(
        f"budget: {budget}\n"
        "model: {default: priced, provider: acme}\n"
        f'providers: {{acme: {{base_url: "{server.url}/v1", api_key: k, '
        f"models: {{priced: {{max_output_tokens: {LONGEST}, {priced}}}}}}}}}\n"
        "auxiliary: {title_generation: {provider: none}}\n"
    )
