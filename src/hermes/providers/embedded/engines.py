"""Runs one helper process per model file, shared by all sessions of this process."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from typing import Any

from hermes.config.extras import need_extra
from hermes.core.errors import ConfigError, ProviderError
from hermes.providers.embedded import serve
from hermes.providers.embedded.model_file import ModelFile

MISSING = need_extra("In-process models", "local")


class Engine:
    """A loaded model. `url` is the base URL of a chat completions server that accepts `key`."""

    def __init__(self, process: subprocess.Popen[bytes], *, url: str, key: str) -> None:
        self.url = url
        self.key = key
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def describe_exit(self) -> str:
        """Return how the process ended, as a clause."""
        return _describe_exit(self._process.wait())


class EnginePool:
    """The running engines, one per model file. `close` ends all helper processes. If this process
    dies, they end when their stdin closes."""

    def __init__(self) -> None:
        self._loading: dict[ModelFile, asyncio.Task[Engine]] = {}
        self._engines: dict[ModelFile, Engine] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    def find_running(self, weights: ModelFile) -> Engine | None:
        engine = self._engines.get(weights)
        return engine if engine is not None and engine.alive else None

    async def start(self, weights: ModelFile, *, threads: int | None = None) -> Engine:
        """Return the engine of this file, started if necessary. Raise ConfigError when the file
        cannot be used and ProviderError when the helper process dies. Cancellation does not stop
        the loading: the next caller gets its result."""
        if engine := self.find_running(weights):
            return engine
        loading = self._loading.get(weights)
        if loading is None:
            # Spawned here and not in the task, so that `close` always knows the process.
            process = _spawn()
            self._processes.append(process)
            loading = asyncio.create_task(self._load(process, weights, threads))
            loading.add_done_callback(lambda task: self._on_loaded(weights, task))
            self._loading[weights] = loading
        return await asyncio.shield(loading)

    async def close(self) -> None:
        for process in self._processes:
            process.kill()
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
        self._engines.clear()
        processes, self._processes = self._processes, []
        for process in processes:
            await asyncio.to_thread(process.wait)
            if process.stdin is not None:
                process.stdin.close()

    async def _load(
        self, process: subprocess.Popen[bytes], weights: ModelFile, threads: int | None
    ) -> Engine:
        # The key gives access to conversations, so it must be unpredictable.
        key = secrets.token_urlsafe(24)
        request = {
            "path": str(weights.path),
            "window": weights.window,
            "threads": threads or default_threads(),
            "key": key,
        }
        result = await asyncio.to_thread(_handshake, process, request)
        if "missing" in result:
            raise ConfigError(MISSING)
        if "error" in result:
            why = result["error"].rstrip(".")
            name = weights.path.name
            raise ConfigError(f"{name} cannot be loaded: {why}; choose another file.")
        if "address" not in result:
            code = await asyncio.to_thread(process.wait)
            raise crash_error(weights, _describe_exit(code))
        engine = Engine(process, url=f"{result['address']}/v1", key=key)
        self._engines[weights] = engine
        return engine

    def _on_loaded(self, weights: ModelFile, task: asyncio.Task[Engine]) -> None:
        del self._loading[weights]
        if not task.cancelled():
            # Retrieves the exception, so that asyncio does not warn; the next caller starts again.
            task.exception()


def default_threads() -> int:
    """Return the number of threads. One core stays free: the runtime's threads synchronise at every
    step, so one delayed thread stops all of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) - 1)


def _spawn() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", serve.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        # Ctrl-C in the terminal interrupts the turn, not the model.
        start_new_session=True,
    )


def _handshake(process: subprocess.Popen[bytes], request: dict[str, Any]) -> dict[str, str]:
    """Return the helper's report about its start; empty if it died without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdout as output:
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return {}
        line = output.readline()
    result: dict[str, str] = json.loads(line) if line.endswith(b"\n") else {}
    return result


def crash_error(weights: ModelFile, ending: str) -> ProviderError:
    return ProviderError(
        f"The process that ran {weights.path.name} {ending}; free memory or choose a smaller"
        " model.",
        reason="unknown",
    )


def _describe_exit(code: int) -> str:
    match -code:
        case signal.SIGKILL:
            return "was killed by the system, most likely for lack of memory"
        case signal.SIGILL:
            return "needs CPU instructions that this processor lacks"
        case number if number > 0:
            return f"crashed (signal {number})"
        case _:
            return f"ended with code {code}"
