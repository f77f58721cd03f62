"""A home with skills for one test: a store on real files, and the service of the skill tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.core.messages import ToolResult
from hermes.core.ports import Fetcher, Workspace
from hermes.core.secrets import SecretStore
from hermes.core.tools import Tool, ToolOutput, ToolSettings
from hermes.core.world import World
from hermes.skills.discovery import SkillEnvironment, SkillRoot, SkillScanner
from hermes.skills.files import Tree, content_hash, read_tree
from hermes.skills.history import Cause, Version, Who
from hermes.skills.hub.lock import HubLedger
from hermes.skills.seeding import SkillSeeder
from hermes.skills.service import SkillService
from hermes.skills.skill import MAIN
from hermes.skills.store import Guard, SkillChange, SkillStore
from hermes.skills.tools import skill_manage
from hermes.skills.usage import SkillUsageStore
from hermes.testing.clock import VirtualClock

ServiceT = TypeVar("ServiceT")


def skill_text(
    name: str, description: str = "Do a thing well", body: str = "", more: str = ""
) -> str:
    head = f"---\nname: {name}\ndescription: {description}\n{more}---\n"
    return head + (body or f"# {name}\n\n1. Begin.\n2. End.\n")


class Bench:
    """`folder` is the home; skills lie in `skills` below it."""

    def __init__(
        self,
        folder: Path,
        *,
        world: World | None = None,
        guard: Guard | None = None,
        external: Sequence[Path] = (),
    ) -> None:
        self.home = folder
        self.skills = folder / "skills"
        self.clock = VirtualClock()
        self.world = world or World(self.clock)
        self.cache = folder / "cache" / "skills.json"
        roots = (
            SkillRoot(path=str(self.skills)),
            *(SkillRoot(path=str(e), kind="external") for e in external),
        )
        self.scan = SkillScanner(roots, self.cache)
        self.ledger = HubLedger(self.skills, self.world.clock)
        self.seeds = SkillSeeder(self.skills, self.cache, folder / "shipped")
        self.usages = SkillUsageStore(self.skills, self.world.clock)
        self.store = SkillStore(
            self.skills,
            self.scan,
            self.world,
            bundled=self.seeds.manifest,
            installed=self.ledger.hashes,
            guard=guard,
        )

    def write(self, place: str, text: str = "", **files: str) -> Path:
        """As a person does it: with an editor."""
        folder = self.skills / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MAIN).write_text(text or skill_text(folder.name))
        for name, content in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return folder

    def change(
        self, name: str, text: str, who: Who = "agent", action: str = "edit", category: str = ""
    ) -> SkillChange:
        return SkillChange(
            name=name,
            action=action,
            cause=Cause(who=who, session="s", call="c", model="m"),
            files={MAIN: text.encode()},
            category=category,
        )

    def tree(self, place: str) -> Tree:
        return read_tree(self.skills / place)

    def digest(self, place: str) -> str:
        return content_hash(self.tree(place))

    def names(self) -> list[str]:
        return [entry.name for entry in self.store.scan().entries]

    def service(self, **settings: Any) -> SkillService:
        given: JsonObject = {
            "here": SkillEnvironment(),
            "home": self.home,
            "cause": lambda call: Cause(who="agent", session="s", call=call, model="m"),
            "variables": dict,
            **settings,
        }
        return SkillService(store=self.store, usages=self.usages, **given)

    def manage(self, action: str, name: str, **arguments: Any) -> Version:
        """Changes a skill as the tool does."""
        given = {"action": action, "name": name, **arguments}
        return self.service().change("c", skill_manage.parameters.decode(given))


class DictVault:
    """A vault without files."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def names(self) -> tuple[str, ...]:
        return tuple(self.values)

    def keep(self, name: str, value: str) -> None:
        self.values[name] = value

    def may_pass(self, name: str) -> bool:
        return True


class Caller:
    """Calls tools as a session does; it is the ToolContext of every call."""

    def __init__(self, skills: SkillService, secrets: SecretStore | None = None) -> None:
        self.settings = ToolSettings()
        self.call_id = "call_1"
        self.stop = asyncio.Event()
        self.answer: Callable[[str], str | None] = lambda question: None
        self.asked: list[str] = []
        self._services = (skills, secrets or SecretStore(DictVault({})))

    @property
    def workspace(self) -> Workspace:
        raise NotImplementedError

    @property
    def web(self) -> Fetcher:
        raise NotImplementedError

    def progress(self, text: str, details: JsonObject | None = None) -> None:
        pass

    def known_result(self, key: str) -> ToolResult | None:
        return None

    def latest(self, tool: str) -> JsonObject | None:
        return None

    def service(self, kind: type[ServiceT]) -> ServiceT:
        return next(each for each in self._services if isinstance(each, kind))

    async def call_tool(
        self, tool: str | Tool, arguments: JsonObject, *, key: str, origin: str = ""
    ) -> ToolResult:
        raise NotImplementedError

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        self.asked.append(question)
        return self.answer(question)

    async def run(self, tool: Tool, **arguments: Any) -> ToolOutput:
        try:
            return await tool(self, tool.parameters.decode(arguments))
        except ToolError as error:
            return ToolOutput.text(str(error), failed=True)


def said(output: ToolOutput) -> str:
    return "".join(getattr(part, "text", "") for part in output.parts)
