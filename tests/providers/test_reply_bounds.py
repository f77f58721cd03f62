"""A reply without an end is an error that costs little time and memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from hermes.codec.values import JsonObject
from hermes.core.errors import ProviderError
from hermes.net.http import HttpClient, Timeouts
from tests.providers.asking import HI, Heard, ask, direct

MEGABYTE = 1_000_000
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def serving(head: bytes, chunks: Iterator[bytes]) -> AsyncIterator[str]:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        try:
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
            writer.close()
        except (ConnectionError, asyncio.CancelledError):
            return

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def heard_from(url: str, timeouts: Timeouts | None = None) -> Heard:
    http = HttpClient()
    provider = direct("chat", url, http, timeouts=timeouts)
    try:
        return await ask(provider, HI)
    finally:
        await http.aclose()


def event(delta: JsonObject) -> bytes:
    choice = {"index": 0, "delta": delta}
    return b"data: " + json.dumps({"model": "m", "choices": [choice]}).encode() + b"\n\n"


def endless(delta: JsonObject) -> Iterator[bytes]:
    data = event(delta)
    while True:
        yield data


MUCH = "word " * 20_000
CALL: JsonObject = {"index": 0, "id": "c", "function": {"name": "look", "arguments": MUCH}}


@pytest.mark.parametrize(
    "delta",
    [{"content": MUCH}, {"reasoning_content": MUCH}, {"tool_calls": [CALL]}],
    ids=["text", "reasoning", "arguments"],
)
async def test_a_reply_that_grows_without_end_is_an_error(delta: JsonObject) -> None:
    async with serving(STREAM, endless(delta)) as url:
        with pytest.raises(ProviderError, match="more than 8,000,000 characters") as caught:
            await heard_from(url)
    assert (caught.value.reason, caught.value.retryable) == ("endless_reply", False)


async def test_a_reply_that_drips_without_end_is_an_error() -> None:
    async with serving(STREAM, endless({"content": "."})) as url:
        with pytest.raises(ProviderError, match="did not end within 0 seconds"):
            await heard_from(url, Timeouts(total=0.3))


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
async def test_a_compressed_bomb_takes_little_memory(kind: str) -> None:
    body = b'data: {"model": "m", "choices": ["' + b" " * (300 * MEGABYTE)
    packed = gzip.compress(body, 1)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\n"
    head += f"content-length: {len(packed)}\r\n\r\n"
    del body
    async with serving(head.encode(), iter([packed])) as url:
        tracemalloc.start()
        try:
            with pytest.raises(ProviderError, match="more than"):
                await heard_from(url)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 150 * MEGABYTE


async def test_events_after_the_end_are_ignored() -> None:
    chunks = [event({"content": "All."}) + b"data: [DONE]\n\n" + event({"content": " More."})]
    async with serving(STREAM, iter(chunks)) as url:
        heard = await heard_from(url)
    assert (heard.whole.message.text, heard.shown) == ("All.", "All.")
