"""The tool that asks the user a question."""

from __future__ import annotations

from typing import Annotated

from hermes.core.errors import ToolError
from hermes.core.messages import Text
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, tool

MAX_CHOICES = 4
NO_ANSWER = (
    "Nobody answered. Decide yourself: take the safest sensible choice, continue, and state what "
    "you assumed in your answer."
)


@tool(
    repeat="safe",
    interactive=True,
    toolset="clarify",
    kind="think",
    display=ToolDisplay(icon="❓", verb="ask", detail="{question}"),
)
async def clarify(
    ctx: ToolContext,
    question: str,
    choices: Annotated[list[str] | None, "Up to 4 options; omit for free text"] = None,
) -> ToolOutput:
    """Ask the user and wait. Only for decisions that change what you do and that you cannot
    resolve yourself; not for permission to run commands."""
    if not question.strip():
        raise ToolError("question is empty; say what you want to know.")
    offered = tuple(dict.fromkeys(each.strip() for each in choices or () if each.strip()))
    if len(offered) > MAX_CHOICES:
        raise ToolError(f"Offer at most {MAX_CHOICES} choices; the user can always answer freely.")
    answer = await ctx.ask(question.strip(), offered)
    details = {
        "question": question.strip(),
        "choices_offered": list(offered),
        "user_response": answer,
    }
    text = NO_ANSWER if answer is None else f"The user answered: {answer}"
    return ToolOutput(parts=(Text(text=text),), details=details, origin="user")
