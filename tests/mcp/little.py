"""A foreign server without any library, for tests: it starts in no time and speaks the older
protocol, in which a server asks back while a call runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
ANY = {"type": "object", "properties": {}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS: dict[str, dict[str, Any]] = {
    "echo": {"description": "Say it again.", "inputSchema": TEXT},
    "environment": {"description": "All that this process sees.", "inputSchema": ANY},
    "fail": {"description": "Go wrong.", "inputSchema": ANY},
    "picture": {"description": "One pixel.", "inputSchema": ANY},
    "slow": {"description": "Take some time.", "inputSchema": ANY},
    "breed": {"description": "Start a process that would outlive us.", "inputSchema": ANY},
    "grow": {"description": "Have one more tool from now on.", "inputSchema": ANY},
    "paint": {"description": "Paint in a colour of the person.", "inputSchema": ANY},
    "wonder": {"description": "Let the client's model think.", "inputSchema": ANY},
    "meet": {"description": "Wait for a second call.", "inputSchema": ANY},
    "freeze": {"description": "Read nothing any more.", "inputSchema": ANY},
    "roots": {"description": "Where the client works.", "inputSchema": ANY},
}
TOOLS["echo"]["annotations"] = TOOLS["meet"]["annotations"] = {"readOnlyHint": True}
COLOUR = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
QUESTION = {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}

_writing = threading.Lock()
_answers: dict[str, Any] = {}
_cancelled: set[Any] = set()
_news = threading.Condition()
_frozen = threading.Event()
_meeting = threading.Barrier(2)


def send(message: dict[str, Any]) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What the client answers to a request of ours."""
    key = f"q{time.monotonic_ns()}"
    send({"id": key, "method": method, "params": params})
    with _news:
        _news.wait_for(lambda: key in _answers)
    answer: dict[str, Any] = _answers.pop(key)
    return answer


def note(file: str, line: str) -> None:
    if file:
        with Path(file).open("a") as out:
            out.write(line + "\n")


def text(words: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], "isError": failed}


def slow(call: Any, given: dict[str, Any], token: Any) -> dict[str, Any]:
    note(given.get("note", ""), f"begun {os.getpid()}")
    if token is not None:
        params = {"progressToken": token, "progress": 1, "total": 2, "message": "half way"}
        send({"method": "notifications/progress", "params": params})
    with _news:
        if _news.wait_for(lambda: call in _cancelled, timeout=given.get("seconds", 0)):
            note(given.get("note", ""), "cancelled")
    return text("done")


def run(call: Any, name: str, given: dict[str, Any], token: Any) -> dict[str, Any]:
    match name:
        case "echo":
            return text(f"echo: {given['text']}")
        case "environment":
            return text("\n".join(f"{key}={value}" for key, value in os.environ.items()))
        case "picture":
            return {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
        case "slow":
            return slow(call, given, token)
        case "breed":
            note(given["note"], str(subprocess.Popen(["sleep", "600"]).pid))
            return text("bred")
        case "grow":
            TOOLS["grown"] = {"description": "Not there before.", "inputSchema": ANY}
            send({"method": "notifications/tools/list_changed"})
            return text("grew")
        case "paint":
            said = ask(
                "elicitation/create", {"message": "Which colour?", "requestedSchema": COLOUR}
            )
            result = said.get("result", {})
            if result.get("action") != "accept":
                return text("no colour", failed=True)
            return text(f"painted {result['content']['colour']}")
        case "wonder":
            params = {"messages": [QUESTION], "maxTokens": 100_000}
            said = ask("sampling/createMessage", params)
            if "error" in said:
                return text(said["error"]["message"], failed=True)
            return text(f"thought: {said['result']['content']['text']}")
        case "meet":
            return text(f"met as {_meeting.wait(timeout=60)}")
        case "freeze":
            _frozen.set()
            return text("frozen")
        case "roots":
            return text(json.dumps(ask("roots/list", {})["result"]["roots"]))
        case _:
            return text(f"this went wrong on purpose: {name}", failed=True)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "little", "version": "1.0"},
            }
        case "tools/list":
            # Two pages, so that paging is tried too.
            names = list(TOOLS)
            if params.get("cursor"):
                return {"tools": [{"name": name, **TOOLS[name]} for name in names[4:]]}
            page = [{"name": name, **TOOLS[name]} for name in names[:4]]
            return {"tools": page, "nextCursor": "more"}
        case "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            return run(request["id"], params["name"], params.get("arguments", {}), token)
        case "resources/list":
            return {"resources": [{"uri": "little://notes", "name": "notes"}]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "resources/read" if params["uri"] == "little://notes":
            return {"contents": [{"uri": "little://notes", "text": "the notes"}]}
        case "resources/read" if params["uri"].startswith("little://hex/"):
            words = bytes.fromhex(params["uri"].removeprefix("little://hex/")).decode()
            return {"contents": [{"uri": params["uri"], "text": words}]}
        case "prompts/list":
            return {"prompts": [{"name": "greet", "arguments": [{"name": "name"}]}]}
        case "prompts/get":
            words = f"Greet {params['arguments']['name']} kindly."
            message = {"role": "user", "content": {"type": "text", "text": words}}
            return {"messages": [message]}
        case "ping":
            return {}
        case method:
            raise LookupError(method)


def serve(request: dict[str, Any]) -> None:
    try:
        result = answer(request)
    except LookupError as error:
        problem = {"code": -32601, "message": f"no {error}"}
        send({"id": request["id"], "error": problem})
    else:
        if request["id"] not in _cancelled:
            send({"id": request["id"], "result": result})


def main() -> None:
    sys.stderr.write("the little one is there\n")
    sys.stderr.flush()
    for line in sys.stdin:
        if _frozen.is_set():
            time.sleep(600)
        message = json.loads(line)
        if "method" in message and "id" in message:
            threading.Thread(target=serve, args=(message,), daemon=True).start()
        elif "id" in message:
            with _news:
                _answers[message["id"]] = message
                _news.notify_all()
        elif message["method"] == "notifications/cancelled":
            with _news:
                _cancelled.add(message["params"]["requestId"])
                _news.notify_all()


if __name__ == "__main__":
    main()
