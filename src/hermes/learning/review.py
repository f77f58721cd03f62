"""Reviews a task: a model proposes skill changes and saves facts to memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.core.events import SessionOpened
from hermes.core.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
    user_says,
)
from hermes.core.prompt import Prompt
from hermes.core.tools import Tool, ToolOutput
from hermes.learning.session_watch import ReviewTrigger, TriggerReason
from hermes.memory.review import REVIEW_TASK, MemoryReview, ReviewedSession
from hermes.memory.tools import memory
from hermes.models.side_model import SideModel
from hermes.skills.history import Cause, Version
from hermes.skills.invocation import read_skill_file
from hermes.skills.tools import skill_manage, skill_view, skills_list

if TYPE_CHECKING:
    from hermes.learning.rehearsals import LearningDeps

MOST_CHARS = 16_000
RESULT_CHARS = 600
ARGUMENT_CHARS = 400
WORDS_CHARS = 2_000

REVIEW = (
    "Review the task below. Does it contain a procedure that will be needed again? Then save it, "
    "in this order of preference: patch the skill that was loaded; patch another of your skills "
    "for this kind of task; add a file to one; only then create a skill. Name a skill after the "
    "kind of task, never after this case. Write the steps that worked, the pitfalls and how to "
    "verify; leave out detours. Put the user's corrections into the skill for that work; facts "
    "about the user or this environment go to memory. Do not save temporary failures, missing "
    "programs, or that a tool does not work. Make one complete change per skill. If nothing is "
    "worth saving, which is common, say “nothing to save” and stop."
)
WHY: dict[TriggerReason, str] = {
    "task": "It took {calls} tool calls.",
    "session": "Much work was done since the last save.",
    "correction": "The user corrected the work: find out what would have prevented that.",
}


def conversation_digest(messages: Iterable[Message]) -> str:
    """Render the conversation, cut at the start; calls come with their results."""
    text = "\n\n".join(line for message in messages for line in _lines(message))
    return text if len(text) <= MOST_CHARS else "[…]\n" + text[-MOST_CHARS:]


def format_skills(skills: Sequence[tuple[str, str, bool]]) -> str:
    """List the skills and whether each may be changed."""
    lines = [f"- {name}: {about}{'' if own else ' (not yours)'}" for name, about, own in skills]
    return "\n".join(("Existing skills:", *lines)) if lines else "There are no skills yet."


def _lines(message: Message) -> list[str]:
    match message:
        case UserMessage(origin="user"):
            return [f"User: {_cut(message.text, WORDS_CHARS)}"]
        case UserMessage():
            return []
        case AssistantMessage():
            lines = [f"Assistant: {_cut(message.text, WORDS_CHARS)}"] if message.text else []
            return lines + [
                f"Call {call.name} {_cut(encode(call.arguments).decode(), ARGUMENT_CHARS)}"
                for call in message.calls
            ]
        case ToolMessage(results=results):
            return [
                f"{'Failed' if result.failed else 'Result'} of {result.name}: "
                f"{_cut(result.text, RESULT_CHARS)}"
                for result in results
            ]


def _cut(text: str, most: int) -> str:
    """Cut the middle of a long text: requests are at the start, errors at the end."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]} […] {text[-most // 2 :]}"


MOST_ROUNDS = 8
MOST_PROPOSALS = 3
ONCE = "{} already has a pending change of yours. Put everything into one change."
ENOUGH = "No more changes in this review; say “nothing to save” and stop."
PROPOSED = "Stored as {}; it is rehearsed before it is used."


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
            opened, session_id=reviewed.id, cause=self._cause, staged=True
        )
        self._proposed: list[Version] = []

    async def run(self, trigger: ReviewTrigger) -> None:
        """Review the turn. Raises ProviderError when no model is available."""
        transcript, meter = self._reviewed.transcript, self._reviewed.meter
        text = f"{await self._list_skills()}\n\n{conversation_digest(transcript.messages)}"
        tools: tuple[Tool, ...] = (skills_list, skill_view, skill_manage)
        if memory.name in self._opened.tools and self._deps.memory.scope(self._opened):
            tools = (memory, *tools)
        prompt = Prompt(
            system=f"{REVIEW}\n\n{WHY[trigger.why].format(calls=trigger.calls)}",
            messages=(user_says(text),),
            tools=tuple(tool.spec for tool in tools),
        )
        execute_memory = await self._memory.executor(self._turn_id)

        async def execute(number: int, call: ToolCall) -> ToolOutput:
            if call.name == memory.name:
                return await execute_memory(number, call)
            return ToolOutput.text(await self._execute(call))

        model = SideModel(self._deps.models, self._deps.run.settings, transcript)
        await model.ask_with_tools(REVIEW_TASK, prompt, meter, execute, rounds=MOST_ROUNDS)

    async def _list_skills(self) -> str:
        def list_skills() -> list[tuple[str, str, bool]]:
            found, store = self._skill_service.available_skills(), self._library.store
            return [(e.name, e.skill.description, store.provenance(e) == "agent") for e in found]

        return format_skills(await asyncio.to_thread(list_skills))

    async def _execute(self, call: ToolCall) -> str:
        if call.name == skills_list.name:
            skills_list.parameters.decode(call.arguments)
            return await self._list_skills()
        if call.name == skill_view.name:
            arguments = skill_view.parameters.decode(call.arguments)
            name, file, find = arguments["name"], arguments["file_path"], self._skill_service.find
            return await asyncio.to_thread(lambda: read_skill_file(find(name), file or "SKILL.md"))
        arguments = skill_manage.parameters.decode(call.arguments)
        self._check(arguments)
        version = await asyncio.to_thread(self._skill_service.change, call.id, arguments)
        self._proposed.append(version)
        return PROPOSED.format(version.id)

    def _check(self, arguments: JsonObject) -> None:
        """Apply the policy; anything that needs approval is refused."""
        if arguments["action"] == "delete":
            raise ToolError("A review cannot delete skills; patch the skill.")
        if len(self._proposed) >= MOST_PROPOSALS:
            raise ToolError(ENOUGH)
        name = arguments["name"]
        if any(version.name == name for version in self._skill_service.store.proposals()):
            raise ToolError(ONCE.format(name))
        self._memory.check_policy(skill_manage, arguments)

    def _cause(self, call: str) -> Cause:
        return Cause(
            who="review",
            session=self._reviewed.id,
            call=f"{self._turn_id} {call}",
            model=self._reviewed.transcript.model,
        )
