"""Agents for tests: they talk to one scripted server, in a home and a folder of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes import AIAgent
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step


class Programs:
    """Makes agents that talk to one scripted server, in a home and a folder of their own."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder = folder
        self.server = server
        self._agents: list[AIAgent] = []

    def agent(self, *steps: Step, **options: Any) -> AIAgent:
        self.server.add(*steps)
        usual: dict[str, Any] = {
            "model": "test",
            "base_url": f"{self.server.url}/v1",
            "api_key": "k",
            "home": self.folder / "home",
            "cwd": self.folder,
        }
        made = AIAgent(**(usual | options))
        self._agents.append(made)
        return made

    def write_home(self, name: str, text: str) -> None:
        """Write a file of the home."""
        file = self.folder / "home" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    @contextmanager
    def running(self, agent: AIAgent, message: str) -> Iterator[list[dict[str, Any]]]:
        """A turn in another thread; the list has its result at the end."""
        results: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: results.append(agent.run_conversation(message)))
        thread.start()
        yield results
        thread.join(60)

    def close(self) -> None:
        for agent in self._agents:
            agent.close()


class GatedSteps:
    """A script whose steps wait, each until `open`."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self._gates = [threading.Event() for _ in steps]
        self._used = 0

    def open(self, n: int) -> None:
        self._gates[n].set()

    async def __call__(self, _asked: object) -> Step:
        n, self._used = self._used, self._used + 1
        await asyncio.to_thread(self._gates[n].wait, 60)
        return self._steps[n]
