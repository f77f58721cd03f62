"""Servers to compare with: Starlette under uvicorn that gives an answer it has ready, and one that
does the least a turn needs. It asks the same model for a stream and keeps one row of each."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Talk = Callable[[Request], Awaitable[JSONResponse]]


def idle(answer: dict[str, object]) -> Talk:
    async def talk(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse(answer)

    return talk


def asking(answer: dict[str, object], model: str, file: Path) -> Talk:
    """The row is as safe as an event of the journal when the client gets its answer."""
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE turns(id INTEGER PRIMARY KEY, asked TEXT, answer TEXT)")
    client = httpx2.AsyncClient()

    async def talk(request: Request) -> JSONResponse:
        given = await request.json()
        body = {"model": "scripted", "stream": True, "messages": given["messages"]}
        pieces = []
        async with client.stream("POST", f"{model}/v1/chat/completions", json=body) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        pieces.append(choice["delta"].get("content") or "")
        row = (json.dumps(given["messages"]), "".join(pieces))
        db.execute("INSERT INTO turns(asked, answer) VALUES (?, ?)", row)
        message = {"role": "assistant", "content": row[1]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse(answer | {"choices": [choice]})

    return talk


def main() -> None:
    port, folder, model = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    answer = json.loads((folder / "answer.json").read_bytes())
    talk = asking(answer, model, folder / "floor.db") if model else idle(answer)
    app = Starlette(routes=[Route("/v1/chat/completions", talk, methods=["POST"])])
    uvicorn.run(app, port=port, http="h11", log_level="error", access_log=False)


if __name__ == "__main__":
    main()
