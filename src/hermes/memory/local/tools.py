"""Tools that query and change the local user model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, ReadHistory, Remember
from hermes.core.errors import ToolError
from hermes.core.tools import PathContext, ToolContext, ToolOutput, tool
from hermes.memory.local.modelling import LocalModel

CLOSED = "There is no user model; run `hermes memory setup local`."


HELD = "The card was not changed: {}, and no one could approve. Tell the user the fact instead."


async def _nothing_against(_call_id: str) -> str:
    return ""


class UserModel:
    """State of the user-model tools in one session. `against` returns why a call may not change the
    model, or ""."""

    def __init__(
        self,
        model: LocalModel | None = None,
        against: Callable[[str], Awaitable[str]] = _nothing_against,
    ) -> None:
        self.model = model
        self.against = against

    def get(self) -> LocalModel:
        if self.model is None:
            raise ToolError(CLOSED)
        return self.model


def _profile_effects(_place: PathContext, arguments: JsonObject) -> list[Effect]:
    card = arguments["card"]
    if card:
        return [Remember(target="user", action="replace", text="\n".join(card))]
    return [ReadHistory(query="who the user is")]


def _query_effects(_place: PathContext, arguments: JsonObject) -> list[Effect]:
    return [ReadHistory(query=arguments["query"])]


@tool(effects=_profile_effects, repeat="safe", toolset="user_model")
async def user_profile(
    ctx: ToolContext, card: Annotated[tuple[str, ...], "New facts; omit to read"] = ()
) -> ToolOutput:
    """Read or replace the card of facts about the user."""
    user_model = ctx.kept(UserModel)
    model = user_model.get()
    if card and (why := await user_model.against(ctx.call_id)):
        raise ToolError(HELD.format(why))
    lines = await model.set_card(list(card)) if card else await model.people.card()
    return ToolOutput.text("\n".join(f"- {line}" for line in lines) or "The card is empty.")


@tool(effects=_query_effects, repeat="safe", toolset="user_model")
async def user_model_query(
    ctx: ToolContext, query: Annotated[str, "A question about the user"]
) -> ToolOutput:
    """Ask what is known about the user: wishes, habits, ways of working."""
    return ToolOutput.text(await ctx.kept(UserModel).get().answer(query))
