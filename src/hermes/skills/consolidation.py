"""Lets a model merge similar skills of the agent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import convert
from hermes.codec.values import Value
from hermes.core.errors import ToolError
from hermes.core.messages import ToolCall, user_says
from hermes.core.prompt import Prompt, ToolSpec
from hermes.core.session import Session
from hermes.core.tools import ToolOutput
from hermes.models.side_model import SideModel
from hermes.skills.files import read_tree
from hermes.skills.history import Cause
from hermes.skills.library import SkillLibrary
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange
from hermes.skills.usage import recently_used

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.models import Models

TASK = "curator"
MOST_ROUNDS = 8
# Limits the total of all texts; recently used skills come first.
MOST_CHARS = 120_000
MOST_NAMED = 5
INSTRUCTIONS = """You maintain a library of skills: short procedures that an assistant loads when a
task fits. Below are all skills that it wrote itself. Find skills about the same kind of task and
call merge_skills for each group: one text with every step, command, pitfall and check of its
parts, stated once, in the order of use, with a description that tells when to load it. Merge only
what people would look up under one name. Most libraries need few merges or none: then say
“nothing to merge”."""

TOOL = ToolSpec(
    name="merge_skills",
    description="Replace several skills with one.",
    parameters={
        "type": "object",
        "properties": {
            "into": {"type": "string", "description": "Name: one of them or a new one"},
            "skills": {
                "type": "array",
                "items": {"type": "string"},
                "description": "All skills that it replaces",
            },
            "content": {"type": "string", "description": "The whole SKILL.md"},
        },
        "required": ["into", "skills", "content"],
    },
)

_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1", re.MULTILINE | re.DOTALL)


class Merge(Value):
    """A merge that the model requests."""

    into: str
    # May include `into`.
    skills: tuple[str, ...]
    content: str


class MergeResult(Value):
    """A merge that was made, or that a dry run would make."""

    into: str
    # Archived skills.
    absorbed: tuple[str, ...]
    # "" in a dry run.
    version: str = ""


class Consolidation:
    """One pass that merges similar skills of a library, paid by `session`. It backs up all skills
    first and archives merged ones. User skills, pinned skills, skills used by jobs and skills with
    extra files stay unchanged."""

    def __init__(
        self,
        models: Models,
        settings: Settings,
        skills: SkillLibrary,
        session: Session,
        *,
        dry_run: bool = False,
    ) -> None:
        self._side_model = SideModel(models, settings, session.transcript)
        self._skills = skills
        self._session = session
        self._needs_backup = settings.curator.backup.enabled
        self._dry_run = dry_run
        self._texts: dict[str, str] = {}
        self._done: list[MergeResult] = []

    async def run(self) -> tuple[MergeResult, ...]:
        """Merge similar skills and return the merges. Raises ProviderError when no model is
        available."""
        self._texts = await asyncio.to_thread(self._candidates)
        if len(self._texts) < 2:
            return ()
        text = "\n\n".join(f"# {name}\n\n{text}" for name, text in self._texts.items())
        prompt = Prompt(system=INSTRUCTIONS, messages=(user_says(text),), tools=(TOOL,))
        await self._side_model.ask_with_tools(
            TASK, prompt, self._session.meter, self._execute, rounds=MOST_ROUNDS
        )
        return tuple(self._done)

    def _candidates(self) -> dict[str, str]:
        """Return the texts of skills that may be merged."""
        store, usages = self._skills.store, self._skills.usages
        fixed = set(self._skills.job_skills())
        known = {entry.name: entry for entry in store.scan().entries}
        recent = [name for name in recently_used(store.folder) if name in known]
        texts: dict[str, str] = {}
        left = MOST_CHARS
        for name in dict.fromkeys((*recent, *sorted(known))):
            if name in fixed or usages.of(name).pinned or store.provenance(known[name]) != "agent":
                continue
            tree = read_tree(Path(known[name].folder))
            text = tree[MAIN].decode("utf-8", "replace") if set(tree) == {MAIN} else ""
            if text and len(text) <= left:
                texts[name] = text
                left -= len(text)
        return texts

    async def _execute(self, _round: int, call: ToolCall) -> ToolOutput:
        merge = convert(Merge, call.arguments)
        await asyncio.to_thread(self._merge, merge, tuple(dict.fromkeys(merge.skills)))
        return ToolOutput.text(f"{merge.into} replaces them.")

    def _merge(self, merge: Merge, parts: tuple[str, ...]) -> None:
        unknown = [name for name in parts if name not in self._texts]
        if unknown:
            raise ToolError(f"{', '.join(unknown)} cannot be merged; choose listed skills.")
        if len(parts) < 2:
            raise ToolError("A merge needs at least two listed skills.")
        is_taken = self._skills.store.scan().find(merge.into) is not None
        if is_taken and merge.into not in parts:
            raise ToolError(f"{merge.into} is another skill; choose another name.")
        missing = missing_code((self._texts[name] for name in parts), merge.content)
        if missing:
            names = ", ".join(f"`{code}`" for code in missing)
            raise ToolError(f"The merged skill leaves out {names}. Keep every command and name.")
        absorbed = tuple(name for name in parts if name != merge.into)
        version = "" if self._dry_run else self._apply(merge, parts, absorbed)
        self._done.append(MergeResult(into=merge.into, absorbed=absorbed, version=version))
        for name in absorbed:
            del self._texts[name]
        self._texts[merge.into] = merge.content

    def _apply(self, merge: Merge, parts: tuple[str, ...], absorbed: tuple[str, ...]) -> str:
        store, curator = self._skills.store, self._skills.curator()
        first = store.find(parts[0])
        if self._needs_backup:
            curator.backup()
            self._needs_backup = False
        cause = Cause(
            who="curator",
            session=self._session.id,
            model=self._session.transcript.model,
            words=f"merged from {', '.join(parts)}",
        )
        version = store.apply(
            SkillChange(
                name=merge.into,
                action="merge",
                cause=cause,
                files={MAIN: merge.content.encode()},
                category=first.category,
            )
        )
        if merge.into not in parts:
            self._skills.usages.record_creation(merge.into, "agent")
        for name in absorbed:
            curator.archive(name)
        return version.id


def missing_code(originals: Iterable[str], merged: str) -> tuple[str, ...]:
    """Return code snippets of the parts that the merged text lacks as whole words."""
    there = " ".join(merged.split())
    wanted = dict.fromkeys(code for text in originals for code in codes(text))
    missing = (c for c in wanted if not re.search(rf"(?<!\w){re.escape(c)}(?!\w)", there))
    return tuple(missing)[:MOST_NAMED]


def codes(text: str) -> list[str]:
    """Return all code spans and all lines of code blocks, with single spaces."""
    blocks = [line for found in _FENCE.findall(text) for line in found[1].splitlines()]
    spans = _SPAN.findall(_FENCE.sub("", text))
    return [flat for code in (*blocks, *spans) if (flat := " ".join(code.split()))]
