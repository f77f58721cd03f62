"""Reviews a task: a model proposes skill changes and saves facts to memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.codec.json import DecodeError
from hermes.codec.values import JsonObject
from hermes.core.effects import Allow
from hermes.core.errors import HermesError, ToolError
from hermes.core.events import SessionOpened
from hermes.core.messages import Message, Text, ToolCall, ToolMessage, ToolResult, user_says
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt
from hermes.core.tools import Tool, ToolOutput
from hermes.core.transcript import Transcript
from hermes.learning.review_prompt import build_review_prompt, conversation_digest, format_skills
from hermes.learning.triggers import TriggerReason
from hermes.memory.review import DENIED, REVIEW_TASK, MemoryReview, NoWorkspace, ReviewedSession
from hermes.memory.tools import memory
from hermes.models.side_model import SideModel
from hermes.policy.rule_setup import rules_for
from hermes.skills.history import Cause, Version
from hermes.skills.invocation import read_skill_file
from hermes.skills.service import SkillService
from hermes.skills.tools import execute_change, skill_manage, skill_view, skills_list

if TYPE_CHECKING:
    from hermes.learning.deps import LearningDeps

MOST_ROUNDS = 8
MOST_PROPOSALS = 3
ONCE = "{} already has a pending change of yours. Put everything into one change."
ENOUGH = "No more changes in this review; say “nothing to save” and stop."
PROPOSED = "Stored as {}; it is rehearsed before it is used."


class PastSession:
    """A closed session; another session pays for its review and receives the notices."""

    def __init__(
        self, id: str, transcript: Transcript, meter: Meter, tell: Callable[[str], None]
    ) -> None:
        self.id = id
        self.transcript = transcript
        self.meter = meter
        self.tell = tell


class SkillReview:
    """Reviews one turn. Changes to skills are proposals, and only the agent's skills can change."""

    def __init__(
        self, deps: LearningDeps, reviewed: ReviewedSession, opened: SessionOpened, turn_id: str
    ) -> None:
        self._deps = deps
        self._reviewed = reviewed
        self._opened = opened
        self._turn_id = turn_id
        self._library = deps.skills(opened.cwd)
        self._memory = MemoryReview(deps.memory, reviewed, opened)
        self._skill_service = self._library.tool_service(
            platform=opened.source, tools=opened.tools, session_id=reviewed.id, cause=self._cause
        )
        self._skill_service.staged = True
        self.proposed: list[Version] = []

    async def run(self, why: TriggerReason, calls: int) -> list[Version]:
        """Returns the proposals; raises ProviderError when no model is available."""
        digest = conversation_digest(self._reviewed.transcript.messages)
        text = f"{await self._list_skills()}\n\n{digest}"
        messages: tuple[Message, ...] = (user_says(text),)
        tools = self._tools()
        prompt = Prompt(
            system=build_review_prompt(why, calls),
            messages=messages,
            tools=tuple(tool.spec for tool in tools.values()),
        )
        memory_service = await self._memory.tool_service(self._turn_id)
        for number in range(MOST_ROUNDS):
            reply = await self._auxiliary().ask(REVIEW_TASK, prompt, self._reviewed.meter)
            if not reply.message.calls:
                break
            results = []
            for call in reply.message.calls:
                if call.name == memory.name and memory.name in tools:
                    results.append(
                        await self._memory.answer(memory_service, f"review {number}", call)
                    )
                else:
                    results.append(await self._answer(tools, call))
            messages = (*messages, reply.message, ToolMessage(results=tuple(results)))
            prompt = Prompt(system=prompt.system, messages=messages, tools=prompt.tools)
        return self.proposed

    def _tools(self) -> dict[str, Tool]:
        offered: tuple[Tool, ...] = (skills_list, skill_view, skill_manage)
        is_known = bool(self._deps.memory.scope(self._opened))
        if memory.name in self._opened.tools and is_known:
            offered = (memory, *offered)
        return {tool.name: tool for tool in offered}

    async def _list_skills(self) -> str:
        def format_list() -> str:
            return format_skills(
                [
                    (e.name, e.skill.description, self._skill_service.provenance(e) == "agent")
                    for e in self._skill_service.available_skills()
                ]
            )

        return await asyncio.to_thread(format_list)

    async def _answer(self, tools: dict[str, Tool], call: ToolCall) -> ToolResult:
        try:
            if call.name not in tools or call.broken:
                raise ToolError(f"Only {', '.join(tools)} can be called now.")
            arguments = tools[call.name].parameters.decode(call.arguments)
            text, failed = await self._apply(call, arguments), False
        except (HermesError, DecodeError) as error:
            text, failed = str(error), True
        output = ToolOutput(parts=(Text(text=text),), failed=failed)
        return ToolResult(call_id=call.id, name=call.name, parts=output.parts, failed=failed)

    async def _apply(self, call: ToolCall, arguments: JsonObject) -> str:
        if call.name == skills_list.name:
            return await self._list_skills()
        if call.name == skill_view.name:
            return await asyncio.to_thread(_text, self._skill_service, arguments)
        self._check(arguments)
        version = await asyncio.to_thread(execute_change, self._skill_service, call.id, arguments)
        self.proposed.append(version)
        return PROPOSED.format(version.id)

    def _check(self, arguments: JsonObject) -> None:
        """Applies the policy; anything that needs approval is refused."""
        if arguments["action"] == "delete":
            raise ToolError("A review cannot delete skills; patch the skill.")
        if len(self.proposed) >= MOST_PROPOSALS:
            raise ToolError(ENOUGH)
        name = arguments["name"]
        waiting = {version.name for version in self._skill_service.store.proposals()}
        if name in waiting:
            raise ToolError(ONCE.format(name))
        rules = rules_for(self._deps.run.config, self._opened.cwd or "/", self._opened.source)
        origins = self._reviewed.transcript.origins()
        for effect in skill_manage.effects(NoWorkspace(), arguments):
            if not isinstance(rules.decide(effect, self._opened.principal, origins), Allow):
                raise ToolError(DENIED)

    def _cause(self, call: str) -> Cause:
        return Cause(
            who="review",
            session=self._reviewed.id,
            call=f"{self._turn_id} {call}",
            model=self._reviewed.transcript.model,
        )

    def _auxiliary(self) -> SideModel:
        transcript = self._reviewed.transcript
        return SideModel(
            self._deps.models,
            self._deps.run.settings,
            main=lambda: (transcript.model, transcript.provider),
            tell=lambda _text: None,
        )


def _text(service: SkillService, arguments: JsonObject) -> str:
    return read_skill_file(service.find(arguments["name"]), arguments["file_path"] or "SKILL.md")
