"""A runtime without weights: it takes the place of the real one in a helper process, plays the
steps of `script.json` beside the model file, and writes down what it was asked.

A step is {"content": …} and may have "finish"; {"status": …, "body": …} refuses, {"die": true} ends
the process in the middle of an answer, {"hang_up": true} closes the connection instead. How far
the script is survives the process.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class CommonParams:
    def __init__(self) -> None:
        self.model, self.cpuparams, self.cpuparams_batch = Bag(), Bag(), Bag()


class Bag:
    path: str
    n_threads: int


class Server:
    def __init__(self, params: Any) -> None:
        folder = Path(params.model.path).parent
        with (folder / "starts.jsonl").open("a") as starts:
            threads = params.cpuparams.n_threads
            starts.write(json.dumps({"window": params.n_ctx, "threads": threads}) + "\n")
        script = json.loads((folder / "script.json").read_text())
        if script == "abort":
            os.kill(os.getpid(), signal.SIGKILL)
        if script == "refuse":
            os.write(2, b"0.00.1 I load: begun\n0.00.2 E load: error loading model: no such kind\n")
            raise RuntimeError("Failed to init server")
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler(folder, script, params.api_keys))
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{self._http.server_address[1]}"


def handler(
    folder: Path, script: list[dict[str, Any]], keys: list[str]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            known = self.headers["authorization"] == f"Bearer {keys[0]}"
            asked = {"body": body, "known": known, "pid": os.getpid()}
            requests = folder / "requests.jsonl"
            number = len(requests.read_text().splitlines()) if requests.exists() else 0
            with requests.open("a") as file:
                file.write(json.dumps(asked) + "\n")
            self.play(script[number])

        def play(self, step: dict[str, Any]) -> None:
            if step.get("hang_up"):
                self.close_connection = True
                return None
            if "status" in step:
                return self.whole(step["status"], json.dumps(step["body"]).encode())
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for piece in pieces(step["content"]):
                self.event({"choices": [{"delta": {"content": piece}}]})
            if step.get("die"):
                self.wfile.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            finish = step.get("finish", "stop")
            self.event({"choices": [{"delta": {}, "finish_reason": finish}]})
            self.event({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5}})
            self.wfile.write(b"data: [DONE]\n\n")
            self.close_connection = True
            return None

        def event(self, chunk: dict[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

        def whole(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def pieces(content: str) -> list[str]:
    return [content[at : at + 4] for at in range(0, len(content), 4)]
