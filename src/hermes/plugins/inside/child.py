"""Main program of a plugin process: JSON lines on descriptor 3."""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

# Started by path; the import path has only the interpreter's folders.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from hermes.plugins.inside.calling import within
from hermes.plugins.inside.context import Refused
from hermes.plugins.inside.limits import apply_limits
from hermes.plugins.inside.runtime import Runtime

LINK = 3
MOST_BYTES = 1_000_000
WORKERS = 8


class HostChannel:
    """Sends messages from any thread."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._one = threading.Lock()
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._last = 0

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, default=str).encode() + b"\n"
        with self._one:
            self._link.sendall(line)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the host and wait for the answer."""
        waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._one:
            self._last += 1
            number = self._last
            self._answers[number] = waiting
        self.send({"ask": number, "method": method, "params": params, "within": within.get()})
        answer = waiting.get()
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return answer.get("result")

    def on_answer(self, message: dict[str, Any]) -> None:
        if waiting := self._answers.pop(message["answer"], None):
            waiting.put(message)


def main() -> None:
    link = socket.socket(fileno=LINK)
    link.set_inheritable(False)
    lines = link.makefile("rb")
    start = json.loads(lines.readline())
    os.chdir(start["data_dir"])
    apply_limits(start["limits"], network=start["network"], processes=start["processes"])
    # The plugin's stdout goes to its log, never to the host.
    os.dup2(2, 1)
    wire = HostChannel(link)
    runtime = Runtime(start, wire.ask)
    work: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for _ in range(WORKERS):
        threading.Thread(target=_serve, args=(runtime, wire, work), daemon=True).start()
    for line in lines:
        message = json.loads(line)
        if "answer" in message:
            wire.on_answer(message)
        elif message["kind"] == "ping":
            # Answered immediately, even while all workers are busy.
            wire.send({"id": message["id"], "result": "pong"})
        else:
            work.put(message)
    try:
        runtime.close()
    except Exception:
        traceback.print_exc()
    os._exit(0)


def _serve(runtime: Runtime, wire: HostChannel, work: queue.SimpleQueue[dict[str, Any]]) -> None:
    while True:
        asked = work.get()
        within.set(asked["id"])
        try:
            if asked["kind"] == "load":
                result: Any = runtime.load()
            else:
                result = runtime.call(asked["kind"], asked["name"], asked["given"], asked["about"])
            answer = {"result": result}
            size = len(json.dumps(answer, default=str))
            if size > MOST_BYTES:
                answer = {"error": f"its result has {size} bytes; the limit is {MOST_BYTES}"}
        except MemoryError:
            answer = {"error": "MemoryError: it exceeded its memory limit"}
        except BaseException as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:2_000]}
        wire.send({"id": asked["id"], **answer})


if __name__ == "__main__":
    main()
