"""A home with the plugins of the handbook, and a scripted model that uses them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from hermes.app.app import App
from hermes.app.start import start
from hermes.config.edit import write_settings
from hermes.config.home import Home
from hermes.config.migrations import REMOVED
from hermes.core.commands import Say
from hermes.core.events import Record, ToolFinished
from hermes.core.messages import ToolResult
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.surfaces.cli.root import root
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls
from tests.durability.kills import without_skills

PAGE = Path(__file__).parents[3] / "docs" / "plugins.md"
_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)\n```", re.DOTALL)
SAMPLES = {name: text + "\n" for name, text in _FILE.findall(PAGE.read_text())}


class Talk:
    def __init__(self, home: Path) -> None:
        self.home = home
        without_skills(self.home)
        self.news: list[str] = []
        self.arrange: Callable[[App], None] = lambda _app: None

    def put(self, name: str, folder: Path | None = None) -> None:
        """The files of one sample of the handbook."""
        for file, text in SAMPLES.items():
            if file.startswith(name):
                self.write(file, text, folder)

    def write(self, file: str, text: str, folder: Path | None = None) -> None:
        path = (folder or self.home / "plugins") / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def hermes(self, *words: str) -> str:
        """What a command prints; it must work."""
        done = CliRunner().invoke(root, list(words), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    async def say(self, *steps: Step, text: str = "go", attended: bool = False) -> Sequence[Record]:
        async with ScriptedServer(list(steps)) as server:
            self.point_to(server.url)
            async with start({}, home=str(self.home)) as app:
                self.arrange(app)
                session = await self.session(app, attended=attended)
                await session.send(Say(text=text))
                await session.wait_until_idle()
                return await app.journal.read(session.id)

    async def session(self, app: App, *, attended: bool = False) -> Session:
        opening = SessionRequest(source="cli", attended=attended, cwd=str(self.home.parent))
        session = await app.open(opening)
        self.news += app.context.notices
        return session

    def point_to(self, url: str) -> None:
        if not (config := self.home / "config.yaml").exists():
            config.write_text(
                f'model: {{default: scripted, provider: custom, base_url: "{url}/v1"}}\n'
                "auxiliary: {title_generation: {provider: none}}\n"
            )
            return
        write_settings(
            Home(self.home),
            {
                ("model", "default"): "scripted",
                ("model", "provider"): "custom",
                ("model", "base_url"): f"{url}/v1",
                ("auxiliary", "title_generation", "provider"): "none",
                ("model", "max_tokens"): REMOVED,
            },
        )


def results(records: Sequence[Record]) -> list[ToolResult]:
    return [each.event.result for each in records if isinstance(each.event, ToolFinished)]


def use(tool: str, /, **arguments: Any) -> Step:
    return calls("tool_call", name=tool, arguments=arguments)
