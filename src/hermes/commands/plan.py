"""`/plan`: write a plan for a request and run it, or continue the newest one."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.commands.registry import CommandContext, Outcome, SendMessage, SlashCommand
from hermes.core.messages import ToolCall


async def plan(here: CommandContext, argument: str) -> Outcome | str | None:
    if not argument:
        return None
    arguments: JsonObject = {"action": "run", "goal": argument}
    if argument in ("resume", "status", "cancel"):
        arguments = {"action": "run" if argument == "resume" else argument}
    call = ToolCall(id=here.app.context.world.new_id("call"), name="plan", arguments=arguments)
    return SendMessage(text=f"/plan {argument}", calls=(call,))


PLAN_COMMANDS = (
    SlashCommand(
        "plan REQUEST|resume|status|cancel",
        "Write a plan with parallel steps, ask you, and run it",
        plan,
        surfaces=("cli", "editor"),
    ),
)
