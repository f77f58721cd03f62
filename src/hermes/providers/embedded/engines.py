"""Runs one helper process per model file and gives all sessions of this process its address."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from typing import Any

from hermes.core.errors import ConfigError, HermesError, ProviderError
from hermes.providers.embedded import serve
from hermes.providers.embedded.weights import Weights

MISSING = (
    "Models inside Hermes need the extra `local`; install it with"
    " `pip install 'hermes-agent[local]'`."
)


class Engine:
    """A loaded model. `url` is the base URL of a chat completions server that takes `key`."""

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

    def ending(self) -> str:
        """How the process ended, in words."""
        return _ending(self._process.wait())


class Engines:
    """Owned by whoever opens sessions; `close` ends all helper processes. When this process dies
    they notice the end of their input and end too."""

    def __init__(self) -> None:
        self._loading: dict[Weights, asyncio.Task[Engine]] = {}
        self._engines: dict[Weights, Engine] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    def running(self, weights: Weights) -> Engine | None:
        engine = self._engines.get(weights)
        return engine if engine is not None and engine.alive else None

    async def start(self, weights: Weights, *, threads: int | None = None) -> Engine:
        """The engine of this file, loaded if need be. ConfigError when the file cannot be used,
        ProviderError when the helper process ends by itself. Being cancelled does not stop the
        loading: the next caller gets its result."""
        if engine := self.running(weights):
            return engine
        loading = self._loading.get(weights)
        if loading is None:
            # Begun here and not in the task, so that `close` knows of it whenever it is called.
            process = _spawn()
            self._processes.append(process)
            loading = asyncio.create_task(self._load(process, weights, threads))
            loading.add_done_callback(lambda task: self._loaded(weights, task))
            self._loading[weights] = loading
        return await asyncio.shield(loading)

    async def close(self) -> None:
        for process in self._processes:
            process.kill()
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
        self._engines.clear()
        processes, self._processes = self._processes, []
        await asyncio.to_thread(_reap, processes)

    async def _load(
        self, process: subprocess.Popen[bytes], weights: Weights, threads: int | None
    ) -> Engine:
        # Whoever has the key can read conversations, so it must not be foreseeable.
        key = secrets.token_urlsafe(24)
        wish = {
            "path": str(weights.path),
            "window": weights.window,
            "threads": threads or default_threads(),
            "key": key,
        }
        told = await asyncio.to_thread(_told, process, wish)
        if "address" not in told:
            raise await asyncio.to_thread(_failure, weights, told, process)
        engine = Engine(process, url=f"{told['address']}/v1", key=key)
        self._engines[weights] = engine
        return engine

    def _loaded(self, weights: Weights, task: asyncio.Task[Engine]) -> None:
        del self._loading[weights]
        if not task.cancelled():
            # A failure that nobody waits for any more is no news: the next caller starts anew.
            task.exception()


def default_threads() -> int:
    """One core stays free: the runtime's threads wait for each other at every step, and one that
    does not get its turn stops all."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) - 1)


def _spawn() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", serve.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        # Ctrl-C in the terminal is for the turn, not for the model.
        start_new_session=True,
    )


def _told(process: subprocess.Popen[bytes], wish: dict[str, Any]) -> dict[str, str]:
    """What the helper says about its start; nothing when it ended without a word."""
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdout as answers:
        try:
            process.stdin.write(json.dumps(wish).encode() + b"\n")
        except BrokenPipeError:
            return {}
        line = answers.readline()
    told: dict[str, str] = json.loads(line) if line.endswith(b"\n") else {}
    return told


def _failure(
    weights: Weights, told: dict[str, str], process: subprocess.Popen[bytes]
) -> HermesError:
    if "missing" in told:
        return ConfigError(MISSING)
    if "error" in told:
        return ConfigError(
            f"{weights.path.name} cannot be loaded: {told['error'].rstrip('.')}; choose another"
            " file."
        )
    return died(weights, _ending(process.wait()))


def died(weights: Weights, ending: str) -> ProviderError:
    return ProviderError(
        f"The process that ran {weights.path.name} {ending}; free memory or choose a smaller"
        " model.",
        reason="unknown",
    )


def _ending(code: int) -> str:
    match -code:
        case signal.SIGKILL:
            return "was ended by the system, most likely for lack of memory"
        case signal.SIGILL:
            return "needs instructions that this processor lacks"
        case number if number > 0:
            return f"crashed (signal {number})"
        case _:
            return f"ended with code {code}"


def _reap(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
