"""A complete installation with canaries: a home, its settings, the real program."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import World
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import ScriptedCall, call
from tests.safety.dangers import dangers
from tests.safety.sandbox import Sandbox
from tests.web.site import Site

HERMES = str(Path(sys.executable).with_name("hermes"))
SECONDS = 240


def calls_of(home: Path) -> tuple[ScriptedCall, ...]:
    return tuple(call("terminal", {"command": each}) for each in dangers(str(home)))


class Installation:
    """A home with canaries and settings that point at a scripted model."""

    def __init__(self, folder: Path, net: Site, server: ScriptedServer) -> None:
        self.sandbox = Sandbox(folder, net)
        self.home, self.project = self.sandbox.home, self.sandbox.project
        self.settings = self.sandbox.state / "config.yaml"
        self.server = server
        # What a model wants that is told nothing else.
        self.wanted = calls_of(self.home)
        # Nothing but the policy stands between a command and this home.
        self.settings.write_text(
            f'model: {{default: m, provider: custom, base_url: "{server.url}/v1"}}\n'
            "auxiliary: {title_generation: {provider: none}}\n"
            f'terminal: {{confinement: "off", cwd: "{self.project}"}}\n'
        )
        self.before = self.sandbox.untouched()

    def set(self, lines: str) -> None:
        """More settings, as the person writes them."""
        with self.settings.open("a") as file:
            file.write(lines)
        self.before = self.sandbox.untouched()

    def env(self, **more: str) -> dict[str, str]:
        proxy = f"http://127.0.0.1:{self.sandbox.net.port}"
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HERMES_HOME": str(self.sandbox.state),
            "http_proxy": proxy,
            "no_proxy": "127.0.0.1",
            **more,
        }

    async def hermes(self, *words: str, **env: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            HERMES,
            *words,
            cwd=self.project,
            env=self.env(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        async with asyncio.timeout(SECONDS):
            out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    @property
    def dangers(self) -> tuple[str, ...]:
        return dangers(str(self.home))

    def app(self) -> App:
        env = self.env()
        app = App(load(Home(self.sandbox.state), env=env), env=env, world=World())
        app.context.user_home = str(self.home)
        return app

    def unharmed(self) -> bool:
        ours = {name: data for name, data in self.sandbox.untouched().items() if _is_ours(name)}
        return ours == {n: d for n, d in self.before.items() if _is_ours(n)} and (
            self.sandbox.leaked() == []
        )


def _is_ours(name: str) -> bool:
    """What was there before; a session also leaves logs, an index and its journal, and a server
    tells other homes which token it listens with."""
    if name.startswith(".local/state/hermes/listeners/"):
        return False
    return not name.startswith(".hermes/") or name.endswith(("config.yaml", ".toml", ".env"))
