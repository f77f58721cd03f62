"""A home with skills for one test: a shelf on real files, and a desk that the tools work with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.core.ports import Fetcher, Workspace
from hermes.core.tools import Tool, ToolOutput, ToolSettings
from hermes.core.world import World
from hermes.skills.catalogue import SkillEnvironment, SkillRoot, SkillScanner
from hermes.skills.files import Tree, content_hash, read_tree
from hermes.skills.history import Cause, ProvenanceResolver, SkillHistory, Who
from hermes.skills.hub.lock import HubLedger
from hermes.skills.seeding import SkillSeeder
from hermes.skills.service import SkillService
from hermes.skills.skill import MAIN
from hermes.skills.store import Guard, SkillChange, SkillStore
from hermes.skills.tools import SkillTools
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
            self.skills, self.scan, self.world, origins=self._origins, guard=guard
        )

    def _origins(self, history: SkillHistory) -> ProvenanceResolver:
        return ProvenanceResolver(history, self.seeds.manifest(), self.ledger.hashes())

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

    def desk(self, **settings: Any) -> SkillService:
        given: JsonObject = {
            "here": SkillEnvironment(),
            "home": self.home,
            "cause": lambda call: Cause(who="agent", session="s", call=call, model="m"),
            "edit": replace_once,
            "variables": dict,
            "has_program": lambda name: True,
            **settings,
        }
        return SkillService(self.store, self.usages, **given)


def replace_once(text: str, old: str, new: str, everywhere: bool) -> str:
    if not old or old not in text:
        raise ToolError("old_string is not in the text")
    if text.count(old) > 1 and not everywhere:
        raise ToolError("old_string fits in several places")
    return text.replace(old, new)


class Caller:
    """Calls tools as a session does; it is the ToolContext of every call."""

    def __init__(self, desk: SkillService) -> None:
        self.settings = ToolSettings()
        self.call_id = "call_1"
        self.stop = asyncio.Event()
        self.answer: Callable[[str], str | None] = lambda question: None
        self.asked: list[str] = []
        self._skills = SkillTools(desk)

    @property
    def workspace(self) -> Workspace:
        raise NotImplementedError

    @property
    def web(self) -> Fetcher:
        raise NotImplementedError

    def progress(self, text: str) -> None:
        pass

    def latest(self, tool: str) -> JsonObject | None:
        return None

    def service(self, kind: type[ServiceT]) -> ServiceT:
        assert isinstance(self._skills, kind)
        return self._skills

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
