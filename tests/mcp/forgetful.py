"""A foreign server over HTTP that gives sessions and forgets them when it is told to."""

from __future__ import annotations

import secrets
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

SCHEMA = {"type": "object", "properties": {}}


class Forgetful:
    """`calls` counts how often its tool was really run, `greetings` how often it was met."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.sessions: set[str] = set()
        self.calls = 0
        self.greetings = 0
        routes = [Route("/mcp", self.answer, methods=["GET", "POST", "DELETE"])]
        config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="error")
        self.server = uvicorn.Server(config)

    def forget(self) -> None:
        self.sessions.clear()

    async def answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        if message["method"] == "initialize":
            return self._greeted(message)
        session = request.headers.get("mcp-session-id", "")
        if not session:
            return JSONResponse(_error(message, -32600, "No session."), status_code=400)
        if session not in self.sessions:
            return Response(status_code=404)
        if "id" not in message:
            return Response(status_code=202)
        return JSONResponse(
            {"jsonrpc": "2.0", "id": message["id"], "result": self._done(message["method"])}
        )

    def _greeted(self, message: dict[str, Any]) -> Response:
        self.greetings += 1
        session = secrets.token_hex(8)
        self.sessions.add(session)
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "forgetful", "version": "1.0"},
        }
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return JSONResponse(answer, headers={"Mcp-Session-Id": session})

    def _done(self, method: str) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": "count", "description": "Count.", "inputSchema": SCHEMA}]}
        if method == "tools/call":
            self.calls += 1
            return {"content": [{"type": "text", "text": str(self.calls)}]}
        return {}


def _error(message: dict[str, Any], code: int, words: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": words}}
