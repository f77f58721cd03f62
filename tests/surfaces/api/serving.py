"""The real `hermes serve` in a process of its own, in front of a scripted model."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

HERMES = str(Path(sys.executable).with_name("hermes"))
START_SECONDS = 60.0


class Serving:
    """`url` has no path. `down` kills the process as a power cut would, `up` starts it again."""

    def __init__(self, home: Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.options = options
        self.env = env or {}
        self.port = 0
        self.url = ""
        self.start_seconds = 0.0
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def token(self) -> str:
        return (self.home / "api_token").read_text().strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def up(self) -> None:
        begun = time.perf_counter()
        env = {name: held for name, held in os.environ.items() if not name.endswith("_API_KEY")}
        env |= {"HERMES_HOME": str(self.home), "HOME": str(self.home.parent), **self.env}
        with (self.home.parent / "serve.err").open("a") as errors:
            self._process = subprocess.Popen(
                [HERMES, "serve", "--port", str(self.port), *self.options],
                env=env,
                cwd=self.home.parent,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        line = self._line()
        self.start_seconds = time.perf_counter() - begun
        assert line.startswith("Listening at "), line
        self.url = line.split()[-1].removesuffix("/v1")
        self.port = int(self.url.rpartition(":")[2])

    def down(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def stop(self) -> int:
        """As a service manager does it; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """Until it has ended by itself; the exit code."""
        assert self._process is not None
        code = self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def client(self, **options: Any) -> httpx2.Client:
        options = {"headers": self.headers, "timeout": 60, **options}
        return httpx2.Client(base_url=self.url, **options)

    def async_client(self, **options: Any) -> httpx2.AsyncClient:
        options = {"headers": self.headers, "timeout": 60, **options}
        return httpx2.AsyncClient(base_url=self.url, **options)

    def _line(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        assert ready, (self.home.parent / "serve.err").read_text()
        return self._process.stdout.readline()


def configure(home: Path, model_url: str, settings: str = "") -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(
        f'model: {{default: scripted, provider: custom, base_url: "{model_url}/v1"}}\n'
        f"auxiliary: {{title_generation: {{provider: none}}}}\n{settings}"
    )


@contextmanager
def serving(
    folder: Path,
    model_url: str,
    *options: str,
    settings: str = "",
    env: dict[str, str] | None = None,
) -> Iterator[Serving]:
    home = folder / "home"
    configure(home, model_url, settings)
    server = Serving(home, *options, env=env)
    server.up()
    try:
        yield server
    finally:
        server.down()


def sse(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Events as (id, name, data)."""
    id = name = ""
    data: list[str] = []
    for line in lines:
        if line.startswith("id: "):
            id = line[4:]
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line and data:
            yield id, name, "\n".join(data)
            name, data = "", []
