"""One tool on its own."""

from __future__ import annotations

import pytest

from hermes.codec.json import DecodeError
from hermes.core.tools import ToolContext, ToolOutput, tool
from hermes.testing.context import ScriptedContext


class Count:
    def __init__(self) -> None:
        self.value = 0


@tool()
async def count(ctx: ToolContext, step: int, fail: bool = False) -> ToolOutput:
    """Count on."""
    kept = ctx.service(Count)
    kept.value += step
    before = (ctx.latest("count") or {}).get("value", 0)
    return ToolOutput.text(f"{before} -> {kept.value}", details={"value": kept.value}, failed=fail)


@tool()
async def choose(ctx: ToolContext) -> ToolOutput:
    """Let the person choose."""
    return ToolOutput.text(str(await ctx.ask("Which?", ("a", "b"))))


@tool()
async def where(ctx: ToolContext) -> ToolOutput:
    """Tell the folder."""
    return ToolOutput.text(ctx.workspace.root)


async def test_arguments_are_decoded_as_for_a_model() -> None:
    context = ScriptedContext()
    assert (await context.call(count, step="3", unknown="x")).details == {"value": 3}
    with pytest.raises(DecodeError, match="step"):
        await context.call(count, step="three")


async def test_what_a_good_call_leaves_is_there_for_the_next() -> None:
    context = ScriptedContext(details={"count": {"value": 40}})
    texts = [await context.call(count, step=1, fail=fail) for fail in (True, False, False)]
    assert texts == [
        ToolOutput.text("40 -> 1", details={"value": 1}, failed=True),
        ToolOutput.text("40 -> 2", details={"value": 2}),
        ToolOutput.text("2 -> 3", details={"value": 3}),
    ]


async def test_the_person_answers_in_order_and_then_is_gone() -> None:
    context = ScriptedContext("b")
    answers = [await context.call(choose) for _ in range(2)]
    assert answers == [ToolOutput.text("b"), ToolOutput.text("None")]
    assert context.asked == [("Which?", ("a", "b"))] * 2


async def test_a_tool_that_needs_a_workspace_says_so() -> None:
    with pytest.raises(AssertionError, match="needs ScriptedContext"):
        await ScriptedContext().call(where)
