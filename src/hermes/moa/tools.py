"""The tool that asks a mixture of agents, and when sessions have it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from copy import copy
from typing import Annotated

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.config.run_context import RunContext
from hermes.core.effects import CallServer, Effect
from hermes.core.errors import HermesError, ToolError
from hermes.core.messages import Text
from hermes.core.tools import PathContext, ToolContext, ToolDisplay, ToolOutput, tool
from hermes.moa.presets import PresetStatus, find_preset, inspect_preset
from hermes.models.models import Models
from hermes.tools.catalogue import CatalogueEntry
from hermes.tools.toolbox import SessionTools

# Asks the default preset; gets the question and a function that shows progress.
Answer = Callable[[str, Callable[[str], None]], Awaitable[JsonObject]]


class MoaService:
    """The mixture of agents that the tool gets from `ToolContext.service`."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer


@tool(
    toolset="moa",
    kind="think",
    display=ToolDisplay(icon="⚖️", verb="ask models", detail="{user_prompt}"),
    conditional=True,
)
async def mixture_of_agents(
    ctx: ToolContext,
    user_prompt: Annotated[str, "The whole question; the models see nothing else"],
) -> ToolOutput:
    """Ask several models a hard question and combine their answers. Slow and costly."""
    answer = ctx.service(MoaService).answer
    if answer is None:
        raise ToolError("No mixture of agents is configured; `hermes moa configure` creates one.")
    if not user_prompt.strip():
        raise ToolError("The question is empty.")
    try:
        result = await answer(user_prompt, ctx.progress)
    except HermesError as error:
        raise ToolError(str(error)) from error
    # The user chose these models, like the main model.
    return ToolOutput(parts=(Text(text=encode(result).decode()),), origin="hermes")


def offer_tool(run: RunContext, models: Models, tools: SessionTools) -> None:
    """Offer the tool to new sessions if the default preset can be used; withdraw it if not."""
    try:
        name, preset = find_preset(run.settings.moa)
    except HermesError:
        tools.offer(mixture_of_agents.name, None)
        return
    status = inspect_preset(models, name, preset)
    if not status.usable:
        tools.offer(mixture_of_agents.name, None)
        return
    made = copy(mixture_of_agents)
    made.effects = _effects_of(status)
    tools.offer(made.name, CatalogueEntry(made.spec, made))


def _effects_of(status: PresetStatus) -> Callable[[PathContext, JsonObject], Iterator[Effect]]:
    """The question is sent to the providers of the models."""
    asked = (*status.references, status.aggregator)
    recipients = ", ".join(dict.fromkeys(each.provider for each in asked if not each.problem))

    def effects(_paths: PathContext, arguments: JsonObject) -> Iterator[Effect]:
        yield CallServer(
            server=recipients,
            tool=mixture_of_agents.name,
            arguments=encode(arguments).decode(),
            changes=False,
        )

    return effects
