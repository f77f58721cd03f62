"""Lets a model merge similar skills of the agent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import Value
from hermes.core.errors import HermesError, ToolError
from hermes.core.messages import Message, Text, ToolCall, ToolMessage, ToolResult, user_says
from hermes.core.prompt import Prompt
from hermes.core.session import Session
from hermes.models.side_model import SideModel
from hermes.skills.catalogue import SkillEntry
from hermes.skills.curator import INSTRUCTIONS, TOOL, Merge, missing_code
from hermes.skills.files import read_tree
from hermes.skills.history import Cause
from hermes.skills.library import SkillLibrary
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.models.models import Models

TASK = "curator"
MOST_ROUNDS = 8
# Limits the total of all texts; recently used skills come first.
MOST_CHARS = 120_000
LEAVES_OUT = "It leaves out {}. Keep every command and name of its parts."


class MergeResult(Value):
    """`absorbed` skills are archived; `version` is "" in a dry run."""

    into: str
    absorbed: tuple[str, ...]
    version: str = ""


class Consolidation:
    """One pass over a library, paid by `session`. It backs up all skills first and archives merged
    ones. User skills, pinned skills, skills used by jobs and skills with extra files stay
    unchanged."""

    def __init__(
        self,
        models: Models,
        settings: Settings,
        skills: SkillLibrary,
        session: Session,
        *,
        dry_run: bool = False,
    ) -> None:
        self._models = models
        self._settings = settings
        self._skills = skills
        self._session = session
        self._dry_run = dry_run
        self._needed: frozenset[str] = frozenset()
        self._texts: dict[str, str] = {}
        self._done: list[MergeResult] = []

    async def run(self) -> tuple[MergeResult, ...]:
        """Raises ProviderError when no model is available."""
        self._texts = await asyncio.to_thread(self._candidates)
        if len(self._texts) < 2:
            return ()
        text = "\n\n".join(f"# {name}\n\n{text}" for name, text in self._texts.items())
        messages: tuple[Message, ...] = (user_says(text),)
        for _ in range(MOST_ROUNDS):
            prompt = Prompt(system=INSTRUCTIONS, messages=messages, tools=(TOOL,))
            reply = await self._auxiliary().ask(TASK, prompt, self._session.meter)
            if not reply.message.calls:
                break
            results = [await asyncio.to_thread(self._answer, call) for call in reply.message.calls]
            messages = (*messages, reply.message, ToolMessage(results=tuple(results)))
        return tuple(self._done)

    def _candidates(self) -> dict[str, str]:
        self._needed = frozenset(self._skills.job_skills())
        known = {entry.name: entry for entry in self._skills.store.scan().entries}
        recent = [name for name in self._skills.usages.recent() if name in known]
        texts: dict[str, str] = {}
        left = MOST_CHARS
        for name in dict.fromkeys((*recent, *sorted(known))):
            text = self._text(known[name])
            if text and len(text) <= left:
                texts[name] = text
                left -= len(text)
        return texts

    def _text(self, entry: SkillEntry) -> str:
        """Returns the text of a skill that may be merged, otherwise ""."""
        if entry.name in self._needed or self._skills.usages.of(entry.name).pinned:
            return ""
        if self._skills.store.provenance(entry) != "agent":
            return ""
        tree = read_tree(Path(entry.folder))
        return tree[MAIN].decode("utf-8", "replace") if set(tree) == {MAIN} else ""

    def _answer(self, call: ToolCall) -> ToolResult:
        try:
            if call.name != TOOL.name or call.broken:
                raise ToolError(f"Only {TOOL.name} can be called now.")
            text, failed = self._merge(convert(Merge, call.arguments)), False
        except (HermesError, DecodeError) as error:
            text, failed = str(error), True
        return ToolResult(call_id=call.id, name=call.name, parts=(Text(text=text),), failed=failed)

    def _merge(self, merge: Merge) -> str:
        self._check(merge)
        version = "" if self._dry_run else self._apply(merge)
        self._done.append(MergeResult(into=merge.into, absorbed=merge.absorbed, version=version))
        for name in merge.absorbed:
            del self._texts[name]
        self._texts[merge.into] = merge.content
        return f"{merge.into} replaces them."

    def _check(self, merge: Merge) -> None:
        unknown = [name for name in merge.parts if name not in self._texts]
        if unknown:
            raise ToolError(f"{', '.join(unknown)} cannot be merged; choose listed skills.")
        if len(merge.parts) < 2:
            raise ToolError("A merge needs at least two listed skills.")
        is_taken = self._skills.store.scan().find(merge.into) is not None
        if is_taken and merge.into not in merge.parts:
            raise ToolError(f"{merge.into} is another skill; choose another name.")
        missing = missing_code({name: self._texts[name] for name in merge.parts}, merge.content)
        if missing:
            raise ToolError(LEAVES_OUT.format(", ".join(f"`{code}`" for code in missing)))

    def _apply(self, merge: Merge) -> str:
        store, curator = self._skills.store, self._skills.curator()
        first = store.find(merge.parts[0])
        keeps_copies = self._settings.curator.backup.enabled
        if keeps_copies and not any(each.version for each in self._done):
            curator.backup()
        version = store.apply(
            SkillChange(
                name=merge.into,
                action="merge",
                cause=Cause(
                    who="curator",
                    session=self._session.id,
                    model=self._session.transcript.model,
                    words=f"merged from {', '.join(merge.parts)}",
                ),
                files={MAIN: merge.content.encode()},
                category=first.category,
            )
        )
        if merge.into not in merge.parts:
            self._skills.usages.record_creation(merge.into, "agent")
        for name in merge.absorbed:
            curator.archive(name)
        return version.id

    def _auxiliary(self) -> SideModel:
        transcript = self._session.transcript
        return SideModel(
            self._models,
            self._settings,
            main=lambda: (transcript.model, transcript.provider),
            tell=lambda _text: None,
        )
