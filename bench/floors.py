"""Servers to compare with: Starlette under uvicorn that streams answers it has ready, and one that
does the least a turn needs. It streams what the same model says and keeps one row of it."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

Talk = Callable[[bytes], AsyncIterator[bytes]]


def idle(folder: Path) -> Talk:
    """What the file says whose name is the question, in its pieces."""
    known: dict[str, list[bytes]] = {}

    async def talk(asked: bytes) -> AsyncIterator[bytes]:
        name = json.loads(asked)["messages"][0]["content"]
        if name not in known:
            whole = (folder / name).read_bytes()
            known[name] = [piece + b"\n\n" for piece in whole.split(b"\n\n") if piece]
        for piece in known[name]:
            yield piece

    return talk


def asking(model: str, file: Path) -> Talk:
    """The row is as safe as an event of the journal when the client gets its last piece."""
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS turns(id INTEGER PRIMARY KEY, asked TEXT, answer TEXT)")
    client = httpx2.AsyncClient()

    async def talk(asked: bytes) -> AsyncIterator[bytes]:
        given = json.loads(asked)["messages"]
        body = {"model": "scripted", "stream": True, "messages": given}
        said = []
        async with client.stream("POST", f"{model}/v1/chat/completions", json=body) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        said.append(choice["delta"].get("content") or "")
                    yield f"{line}\n\n".encode()
        row = (json.dumps(given), "".join(said))
        db.execute("INSERT INTO turns(asked, answer) VALUES (?, ?)", row)
        yield b"data: [DONE]\n\n"

    return talk


def main() -> None:
    port, folder, model = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    talk = asking(model, folder / "floor.db") if model else idle(folder)

    async def serve(request: Request) -> StreamingResponse:
        return StreamingResponse(talk(await request.body()), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", serve, methods=["POST"])])
    uvicorn.run(app, port=port, http="h11", log_level="error", access_log=False)


if __name__ == "__main__":
    main()
