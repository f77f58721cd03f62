"""Model servers that people run themselves, as far as their answers about themselves go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes.codec.json import encode
from hermes.codec.values import JsonValue

Pages = dict[str, JsonValue]

OLLAMA: Pages = {
    "GET /api/tags": {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 5_000}]},
    "GET /api/version": {"version": "0.14.0"},
    "GET /api/ps": {"models": []},
    "GET /v1/models": {"object": "list", "data": [{"id": "qwen3:8b", "owned_by": "library"}]},
    "POST /api/show": {
        "parameters": "num_ctx 16384",
        "model_info": {"qwen3.context_length": 40960},
        "capabilities": ["completion", "tools"],
    },
}
LM_STUDIO: Pages = {
    "GET /api/v1/models": {
        "models": [
            {
                "type": "llm",
                "key": "qwen3-8b",
                "loaded_instances": [{"config": {"context_length": 12_000}}],
                "max_context_length": 131_072,
            },
            {"type": "llm", "key": "other", "max_context_length": 4_096},
        ]
    },
    "GET /v1/models": {"data": [{"id": "qwen3-8b"}, {"id": "other"}]},
}
LLAMA_CPP: Pages = {
    "GET /props": {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1},
    "GET /v1/models": {
        "models": [{"name": "/weights/qwen.gguf"}],
        "data": [{"id": "/weights/qwen.gguf", "meta": {"n_ctx_train": 40960}}],
    },
}
VLLM: Pages = {
    "GET /version": {"version": "0.15.1"},
    "GET /v1/models": {"data": [{"id": "Qwen/Qwen3-8B", "max_model_len": 24_576}]},
}
PROXY: Pages = {"GET /v1/models": {"data": [{"id": "a", "max_input_tokens": 65_536}, {"id": "b"}]}}


class FakeServer:
    """`asked` are the first lines of all requests, `keys` their credentials."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.asked: list[str] = []
        self.keys: list[str] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._one(head.decode(), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(
        self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first, *rest = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in rest if line)
        await reader.readexactly(int(headers.get("content-length", 0)))
        line = first.rsplit(" ", 1)[0]
        self.asked.append(line)
        self.keys.append(headers.get("authorization", headers.get("x-api-key", "")))
        page = self.pages.get(line)
        if page == "silence":
            await asyncio.sleep(30)
        body = encode({"error": "not found"} if page is None else page)
        status = "404 Not Found" if page is None else "200 OK"
        start = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
        writer.write(f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()


@asynccontextmanager
async def serving(pages: Pages) -> AsyncIterator[FakeServer]:
    fake = FakeServer(dict(pages))
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await fake.answer(reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
