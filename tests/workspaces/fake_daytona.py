"""Daytona's REST interface as far as Hermes uses it, on loopback: the same paths, fields and states
as their published client, with sandboxes that are folders of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "dtn_test"


class FakeDaytona:
    """`sandboxes` holds the state of each by its name; `requests` what was asked, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sandboxes: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.refuse_execute = 0
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(*fake.answer("GET", self.path, {}, self.headers["Authorization"]))

            def do_DELETE(self) -> None:
                self._answer(*fake.answer("DELETE", self.path, {}, self.headers["Authorization"]))

            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size) or b"{}")
                self._answer(*fake.answer("POST", self.path, body, self.headers["Authorization"]))

            def _answer(self, status: int, value: object) -> None:
                raw = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def home(self, name: str) -> Path:
        return self.folder / name

    def answer(
        self, method: str, path: str, body: dict[str, Any], authorization: str | None
    ) -> tuple[int, object]:
        if authorization != f"Bearer {KEY}":
            return 401, {"message": "Unauthorized"}
        words = path.strip("/").split("/")
        if words[-1] != "execute":
            self.requests.append(f"{method} {path}")
        match (method, words):
            case ("POST", ["api", "sandbox"]):
                return self._make(body)
            case (_, ["api", "sandbox", name, *rest]):
                return self._steer(method, name, rest)
            case ("POST", ["toolbox", name, "process", "execute"]):
                return self._execute(name, body)
        return 404, {"message": "Not found"}

    def _make(self, body: dict[str, Any]) -> tuple[int, object]:
        known = {
            "name", "labels", "autoStopInterval", "networkBlockAll", "snapshot", "buildInfo",
            "cpu", "memory", "disk",
        }  # fmt: skip
        if unknown := body.keys() - known:
            return 400, {"message": f"unexpected {sorted(unknown)}"}
        name = body["name"]
        self.home(name).mkdir(parents=True)
        self.sandboxes[name] = {
            **body,
            "id": name,
            "state": "creating",
            "toolboxProxyUrl": f"{self.url}/toolbox",
        }
        return 200, self.sandboxes[name]

    def _steer(self, method: str, name: str, rest: list[str]) -> tuple[int, object]:
        sandbox = self.sandboxes.get(name)
        if sandbox is None:
            return 404, {"message": "Sandbox not found"}
        if method == "DELETE":
            del self.sandboxes[name]
            return 200, {}
        if rest:
            sandbox["state"] = {"start": "starting", "stop": "stopped"}[rest[0]]
            return 200, sandbox
        answer = dict(sandbox)
        if sandbox["state"] in ("creating", "starting"):
            sandbox["state"] = "started"  # at the next look
        return 200, answer

    def _execute(self, name: str, body: dict[str, Any]) -> tuple[int, object]:
        if self.refuse_execute:
            self.refuse_execute -= 1
            return 502, {"message": "bad gateway"}
        sandbox = self.sandboxes.get(name)
        if sandbox is None or sandbox["state"] != "started":
            return 400, {"message": "Sandbox is not running"}
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home(name)), "LANG": "C.UTF-8"}
        done = subprocess.run(
            ["sh", "-c", body["command"]],
            env=env,
            cwd=self.home(name),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=body["timeout"],
            check=False,
        )
        return 200, {"exitCode": done.returncode, "result": done.stdout.decode("utf-8", "replace")}
