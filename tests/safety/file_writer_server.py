"""An MCP server with one tool that writes files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TEXTS = {"type": "object", "properties": {name: {"type": "string"} for name in ("path", "text")}}
PUT = {"name": "put", "description": "Write a file.", "inputSchema": TEXTS}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "scribe", "version": "1.0"}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            return {"tools": [PUT]}
        case "tools/call":
            Path(params["arguments"]["path"]).write_text(params["arguments"]["text"])
            return {"content": [{"type": "text", "text": "Written."}]}
        case _:
            return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params", {}))
        sys.stdout.write(
            json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n"
        )
        sys.stdout.flush()
