"""The part of the library `modal` that Hermes uses, with its names and its `.aio` twins. A sandbox
is a folder of this machine, a snapshot a copy of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Each stream that is read holds one.
_READERS = ThreadPoolExecutor(64)


class Both:
    """A function that can be called, or awaited as `.aio`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(*args, **options)

    async def aio(self, *args: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_READERS, partial(self._function, *args, **options))


class ModalError(Exception):
    pass


class Reader:
    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def read(self) -> bytes:
        data: bytes = self._pipe.read()
        return data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while data := await loop.run_in_executor(_READERS, self._pipe.read1, 65_536):
            yield data


class Writer:
    def __init__(self, pipe: Any) -> None:
        self._pipe, self._data, self._eof = pipe, b"", False
        self.drain = Both(self._drain)

    def write(self, data: bytes) -> None:
        assert not self._eof
        self._data += data

    def write_eof(self) -> None:
        self._eof = True

    def _drain(self) -> None:
        try:
            self._pipe.write(self._data)
            if self._eof:
                self._pipe.close()
        except BrokenPipeError:
            pass
        self._data = b""


class Process:
    def __init__(self, words: tuple[str, ...], home: Path) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        self._process = subprocess.Popen(
            words, env=env, cwd=home, stdin=-1, stdout=-1, stderr=-1, start_new_session=True
        )
        self.stdin = Writer(self._process.stdin)
        self.stdout = Reader(self._process.stdout)
        self.stderr = Reader(self._process.stderr)
        self.wait = Both(self._process.wait)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class FakeModal:
    """Stands for the module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[dict[str, Any]] = []
        self.processes: list[Process] = []
        self.sandboxes: dict[str, Any] = {}
        self.images: dict[str, Path] = {}
        self.exception = SimpleNamespace(Error=ModalError)
        self.App = SimpleNamespace(lookup=Both(lambda name, create_if_missing=False: name))
        self.Image = SimpleNamespace(
            from_registry=lambda tag: SimpleNamespace(object_id=tag),
            from_id=lambda image_id: SimpleNamespace(object_id=image_id),
        )
        self.Sandbox = SimpleNamespace(create=Both(self._create), from_id=Both(self._from_id))

    def _create(self, *words: str, **options: Any) -> Any:
        home = self.folder / f"sb-{len(self.made)}"
        self.made.append(options)
        source = self.images.get(options["image"].object_id)
        if source:
            shutil.copytree(source, home, symlinks=True)
        else:
            home.mkdir(parents=True)
        sandbox = SimpleNamespace(object_id=home.name, home=home, running=True)
        sandbox.exec = Both(lambda *argv, text=True: self._exec(sandbox, argv, text))
        sandbox.poll = Both(lambda: None if sandbox.running else 0)
        sandbox.terminate = Both(lambda: setattr(sandbox, "running", False))
        sandbox.snapshot_filesystem = Both(lambda: self._snapshot(sandbox))
        self.sandboxes[home.name] = sandbox
        return sandbox

    def _from_id(self, sandbox_id: str) -> Any:
        if sandbox_id not in self.sandboxes:
            raise ModalError("no such sandbox")
        return self.sandboxes[sandbox_id]

    def _exec(self, sandbox: Any, argv: tuple[str, ...], text: bool) -> Process:
        assert not text
        if not sandbox.running:
            raise ModalError("the sandbox has ended")
        process = Process(argv, sandbox.home)
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in self.processes:
            process.end()

    def _snapshot(self, sandbox: Any) -> Any:
        image_id = f"im-{len(self.images)}"
        copy = self.folder / image_id
        shutil.copytree(sandbox.home, copy, symlinks=True, ignore=_pipes)
        self.images[image_id] = copy
        return SimpleNamespace(object_id=image_id)


def _pipes(folder: str, names: list[str]) -> list[str]:
    """Named pipes cannot be copied."""
    return [name for name in names if Path(folder, name).is_fifo()]
