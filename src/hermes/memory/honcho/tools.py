"""Tools that query and change the user model on a Honcho server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, ReadHistory, Remember
from hermes.core.errors import ToolError
from hermes.core.tools import Effects, PathContext, ToolContext, ToolOutput, tool
from hermes.memory.honcho.client import HonchoError
from hermes.memory.honcho.modelling import HonchoModel
from hermes.memory.honcho.settings import Level

T = TypeVar("T")

CLOSED = "Honcho is not set up; run `hermes memory setup honcho`."
HELD = "Nothing was changed: {}, and no one could approve. Tell the user the fact instead."
NOTHING = "Honcho knows nothing about that yet."


class HonchoService:
    """State of the Honcho tools in one session. `opened` returns the model once it is ready;
    `against` returns why a call may not change it, or ""."""

    def __init__(
        self,
        opened: Callable[[], Awaitable[HonchoModel]] | None = None,
        against: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        self._opened = opened
        self._against = against

    async def check(self, call_id: str) -> None:
        """Raises ToolError when the call may not change the model."""
        if self._against is not None and (why := await self._against(call_id)):
            raise ToolError(HELD.format(why))

    async def use(self, work: Callable[[HonchoModel], Awaitable[T]]) -> T:
        """Runs `work`; HonchoError becomes ToolError."""
        if self._opened is None:
            raise ToolError(CLOSED)
        try:
            return await work(await self._opened())
        except HonchoError as error:
            raise ToolError(str(error)) from error


def _effects(*changing: str) -> Effects:
    """Reads; with one of these arguments, writes."""

    def effects(_place: PathContext, arguments: JsonObject) -> list[Effect]:
        given = {key: value for key, value in arguments.items() if value}
        text = encode(given).decode()
        if any(name in given for name in changing):
            return [Remember(target="honcho", action="replace", text=text)]
        return [ReadHistory(query=text)]

    return effects


@tool(effects=_effects("card"), repeat="safe", toolset="honcho")
async def honcho_profile(
    ctx: ToolContext, card: Annotated[tuple[str, ...], "New facts; omit to read"] = ()
) -> ToolOutput:
    """Read or replace the card of facts about the user."""

    async def work(model: HonchoModel) -> tuple[str, ...]:
        if card:
            return await model.client.set_card(model.ai, card, target=model.user)
        return await model.client.card(model.ai, target=model.user)

    service = ctx.kept(HonchoService)
    if card:
        await service.check(ctx.call_id)
    return _lines(await service.use(work))


@tool(effects=_effects(), repeat="safe", toolset="honcho")
async def honcho_search(ctx: ToolContext, query: str) -> ToolOutput:
    """Search what the user has said, by meaning."""
    service = ctx.kept(HonchoService)
    return _lines(await service.use(lambda model: model.client.search(model.user, query)))


@tool(effects=_effects(), repeat="safe", toolset="honcho")
async def honcho_context(ctx: ToolContext) -> ToolOutput:
    """Show what is known about the user."""

    async def work(model: HonchoModel) -> str:
        found = await model.client.context(model.ai, target=model.user)
        return "\n".join((*(found.peer_card or ()), found.representation or "")).strip()

    return ToolOutput.text(await ctx.kept(HonchoService).use(work) or NOTHING)


@tool(effects=_effects(), repeat="safe", toolset="honcho")
async def honcho_reasoning(
    ctx: ToolContext,
    query: Annotated[str, "A question about the user"],
    reasoning_level: Level | None = None,
) -> ToolOutput:
    """Answer a question about the user by reasoning."""
    service = ctx.kept(HonchoService)
    return ToolOutput.text(
        await service.use(lambda model: model.reason(query, reasoning_level)) or NOTHING
    )


@tool(effects=_effects("conclusion", "delete_id"), toolset="honcho")
async def honcho_conclude(
    ctx: ToolContext,
    conclusion: Annotated[str, "A fact about the user"] = "",
    delete_id: Annotated[str, "Or the id of a wrong one"] = "",
) -> ToolOutput:
    """Add or delete a fact about the user."""

    async def work(model: HonchoModel) -> str:
        if delete_id:
            await model.client.drop_conclusion(delete_id)
            return f"{delete_id} is deleted."
        made = await model.client.conclude(model.ai, model.user, conclusion)
        return "\n".join(f"{each.id}: {each.content}" for each in made)

    if bool(conclusion) == bool(delete_id):
        raise ToolError("Give either a conclusion or a delete_id.")
    service = ctx.kept(HonchoService)
    await service.check(ctx.call_id)
    return ToolOutput.text(await service.use(work))


def _lines(lines: tuple[str, ...]) -> ToolOutput:
    return ToolOutput.text("\n".join(f"- {line}" for line in lines) or NOTHING)
