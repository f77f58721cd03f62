"""Connects plans with a session: its tools, its model and what was said in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hermes.codec.json import convert, plain
from hermes.codec.values import replace
from hermes.config.provider_settings import AuxiliaryTaskSettings
from hermes.core.messages import AssistantMessage, UserMessage, user_says
from hermes.core.prompt import Prompt
from hermes.core.tools import Tool
from hermes.models.side_model import MAIN, SideModel
from hermes.plans.model import PlanSettings
from hermes.plans.planner import MAX_FACTS_CHARS, RULES
from hermes.plans.tools import PlanningService, plan

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.models.models import Models

TASK = "planning"
MAX_TOKENS = 4_000
RECENT_MESSAGES = 6
# Plans use `ask_user`, and no plan runs another one.
EXCLUDED = ("clarify", "tool_call", "tool_search", "todo", plan.name)
STEP_SYSTEM = "You complete one step of a plan. Answer with the result only."


def make_planning_service(
    run: RunContext,
    models: Models,
    tools: Callable[[], Iterable[Tool]],
    find_session: Callable[[], Session],
) -> PlanningService:
    settings = run.settings.planning

    async def ask(kind: str, request: str) -> str:
        session = find_session()
        system = RULES if kind == "plan" else STEP_SYSTEM
        limit = MAX_TOKENS if kind == "plan" else None
        prompt = Prompt(system=system, messages=(user_says(request),), max_tokens=limit)
        own = run.settings.auxiliary.planning
        if kind == "plan" and settings.model:
            own = AuxiliaryTaskSettings(model=settings.model)
        elif own == AuxiliaryTaskSettings():
            own = AuxiliaryTaskSettings(provider=MAIN)
        changed = replace(run.settings.auxiliary, planning=own)
        side = SideModel(
            models, replace(run.settings, auxiliary=changed), session.transcript, session.tell
        )
        return (await side.ask(TASK, prompt, session.meter)).message.text

    def facts() -> str:
        recent = find_session().transcript.messages[-RECENT_MESSAGES:]
        said = [m.text for m in recent if isinstance(m, UserMessage | AssistantMessage)]
        return "\n".join(text for text in said if text)[-MAX_FACTS_CHARS:]

    names = PlanSettings.__struct_fields__
    limits = {name: value for name, value in plain(settings).items() if name in names}
    return PlanningService(
        lambda: (tool for tool in tools() if tool.name not in EXCLUDED),
        convert(PlanSettings, limits),
        ask,
        facts,
    )
