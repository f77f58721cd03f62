"""The Honcho memory provider and its tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from hermes.codec.json import encode
from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import JsonObject
from hermes.core.effects import Effect, ReadHistory, Remember
from hermes.core.errors import ToolError
from hermes.core.messages import Message
from hermes.core.tools import Effects, PathContext, ToolContext, ToolOutput, tool
from hermes.memory.entries import Action, Target
from hermes.memory.honcho.client import HonchoClient, HonchoError
from hermes.memory.honcho.settings import (
    MOST_DEPTH,
    HonchoSettings,
    Level,
    safe_name,
)
from hermes.memory.provider import ApprovalCheck, MemoryProvider, ProviderContext

COLD = "Who is this person? What do they want, how do they work, what should be kept in mind?"
WARM = "Given what was just said, what about this person matters most now?"
AUDIT = "Check this for unsupported claims and restate it without them:\n\n{}"
RECONCILE = "Where these two disagree, say which is right, in one short text:\n\n{}\n\n{}"
LEFT = (
    "Messages on the Honcho server of workspace {} may still say it; delete its session “{}” there."
)


class HonchoModel(MemoryProvider):
    name = "honcho"

    def __init__(self, settings: HonchoSettings, client: HonchoClient, outside: Path) -> None:
        """Create a closed model. `outside` is the settings file outside the home."""
        self.settings = settings
        self._outside = outside
        self.client = client
        self.user = safe_name(settings.peer_name)
        self.ai = safe_name(settings.ai_peer)
        self.session = ""
        self._turns = 0
        self._unsent: list[tuple[str, str]] = []
        self._supplement = ""

    def is_available(self) -> bool:
        return bool(self.settings.api_key or self.settings.base_url)

    async def initialize(self, began: ProviderContext) -> None:
        self.session = self.settings.session_name(began.session_id, began.cwd)
        await self.client.ensure((self.user, self.ai))
        # Directional: the assistant observes the user. Unified: neither observes the other.
        watches = self.settings.observation_mode == "directional"
        peers: dict[str, JsonObject] = {
            self.user: {"observe_me": True, "observe_others": False},
            self.ai: {"observe_me": False, "observe_others": watches},
        }
        await self.client.ensure_session(self.session, peers)

    def backup_paths(self) -> tuple[Path, ...]:
        return (self._outside,)

    def system_prompt_block(self) -> str:
        if self.settings.recall_mode == "context":
            return ""
        return "Ask honcho_reasoning or honcho_search when it matters who the user is."

    async def prefetch(self, query: str) -> str:
        self._turns += 1
        settings = self.settings
        if settings.recall_mode == "tools":
            return ""
        parts: list[str] = []
        if (self._turns - 1) % max(1, settings.context_cadence) == 0:
            found = await self.client.context(self.ai, target=self.user, query=query)
            tokens = settings.context_tokens
            parts.append(found.text[: None if tokens is None else tokens * CHARS_PER_TOKEN])
        if not self._supplement and (self._turns - 1) % max(1, settings.dialectic_cadence) == 0:
            self._supplement = await self.reason(COLD if self._turns == 1 else WARM)
        parts.append(self._supplement[: settings.dialectic_max_chars])
        self._supplement = ""
        return "\n\n".join(part for part in parts if part)

    async def queue_prefetch(self, query: str) -> None:
        """Ask the slow dialectic endpoint ahead of the next message."""
        due = self._turns % max(1, self.settings.dialectic_cadence) == 0
        if due and self.settings.recall_mode != "tools":
            self._supplement = await self.reason(f"{WARM}\n\n{query}")

    async def sync_turn(self, user: str, assistant: str, *, trusted: bool) -> None:
        """Send the turn to Honcho, unless untrusted text may have influenced it."""
        if not self.settings.save_messages or not trusted:
            return
        self._unsent += [(self.user, part) for part in self._chunks(user)]
        self._unsent += [(self.ai, part) for part in self._chunks(assistant)]
        every = self.settings.write_frequency
        if every == "session" or (isinstance(every, int) and self._turns % max(1, every)):
            return
        await self._send()

    async def on_session_end(self, messages: Sequence[Message]) -> None:
        await self._send()

    async def on_memory_write(self, action: Action, target: Target, content: str) -> None:
        """Store facts about the user as conclusions."""
        if target == "user" and action == "add" and content:
            await self.client.conclude(self.ai, self.user, content)

    async def forget(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Delete conclusions and card lines; messages can only be deleted with their session."""
        for conclusion in await self.client.conclusions(self.ai, self.user):
            if remove_phrases(conclusion.content) != conclusion.content:
                await self.client.drop_conclusion(conclusion.id)
        card = await self.client.card(self.ai, target=self.user)
        remaining = [line for line in card if remove_phrases(line) == line]
        if len(remaining) < len(card):
            await self.client.set_card(self.ai, remaining, target=self.user)
        return [LEFT.format(self.settings.workspace, self.session or "*")]

    async def shutdown(self) -> None:
        await self._send()

    async def reason(self, query: str, level: Level | None = None) -> str:
        """Ask about the user, in as many passes as the settings say."""
        answer = await self._chat(query, level)
        depth = min(max(1, self.settings.dialectic_depth), MOST_DEPTH)
        if depth >= 2 and answer:
            checked = await self._chat(AUDIT.format(answer), level) or answer
            if depth >= MOST_DEPTH:
                return await self._chat(RECONCILE.format(answer, checked), level) or checked
            return checked
        return answer

    async def _chat(self, query: str, level: Level | None) -> str:
        return await self.client.chat(
            self.ai,
            query,
            level=self.settings.level_for(query, level),
            target=self.user,
            session=self.session,
        )

    async def _send(self) -> None:
        """Send queued messages; on failure they stay queued."""
        if not self._unsent:
            return
        unsent, self._unsent = self._unsent, []
        try:
            await self.client.add_messages(self.session, unsent)
        except HonchoError:
            self._unsent = unsent + self._unsent
            raise

    def _chunks(self, text: str) -> list[str]:
        size = max(1, self.settings.message_max_chars)
        return [text[at : at + size] for at in range(0, len(text), size)]


T = TypeVar("T")

CLOSED = "Honcho is not set up; run `hermes memory setup honcho`."
NOTHING = "Honcho knows nothing about that yet."


class HonchoService:
    """State of the Honcho tools in one session. `opened` returns the model once it is ready;
    `check` asks the policy before a change."""

    def __init__(
        self,
        opened: Callable[[], Awaitable[HonchoModel]] | None = None,
        check: ApprovalCheck | None = None,
    ) -> None:
        self._opened = opened
        self._check = check

    async def use(self, work: Callable[[HonchoModel], Awaitable[T]], *, changes_in: str = "") -> T:
        """Run `work`. Raises ToolError in place of a HonchoError. `changes_in` is the id of a call
        that changes the model."""
        if self._opened is None:
            raise ToolError(CLOSED)
        if changes_in and self._check:
            await self._check(changes_in)
        try:
            return await work(await self._opened())
        except HonchoError as error:
            raise ToolError(str(error)) from error


def _effects(*changing: str) -> Effects:
    """Return the effects of a tool that reads, and writes if one of these arguments is set."""

    def effects(_context: PathContext, arguments: JsonObject) -> list[Effect]:
        filled = {key: value for key, value in arguments.items() if value}
        text = encode(filled).decode()
        if any(name in filled for name in changing):
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

    service = ctx.service(HonchoService)
    return _lines(await service.use(work, changes_in=ctx.call_id if card else ""))


@tool(effects=_effects(), repeat="safe", toolset="honcho")
async def honcho_search(ctx: ToolContext, query: str) -> ToolOutput:
    """Search what the user has said, by meaning."""
    service = ctx.service(HonchoService)
    return _lines(await service.use(lambda model: model.client.search(model.user, query)))


@tool(effects=_effects(), repeat="safe", toolset="honcho")
async def honcho_context(ctx: ToolContext) -> ToolOutput:
    """Show what is known about the user."""
    found = await ctx.service(HonchoService).use(
        lambda model: model.client.context(model.ai, target=model.user)
    )
    return ToolOutput.text(found.text or NOTHING)


@tool(effects=_effects(), repeat="safe", toolset="honcho")
async def honcho_reasoning(
    ctx: ToolContext,
    query: Annotated[str, "A question about the user"],
    reasoning_level: Level | None = None,
) -> ToolOutput:
    """Answer a question about the user by reasoning."""
    service = ctx.service(HonchoService)
    return ToolOutput.text(
        await service.use(lambda model: model.reason(query, reasoning_level)) or NOTHING
    )


@tool(effects=_effects("conclusion", "delete_id"), toolset="honcho")
async def honcho_conclude(
    ctx: ToolContext,
    conclusion: Annotated[str, "A fact about the user"] = "",
    delete_id: Annotated[str, "Or the id of a fact to delete"] = "",
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
    service = ctx.service(HonchoService)
    return ToolOutput.text(await service.use(work, changes_in=ctx.call_id))


def _lines(lines: tuple[str, ...]) -> ToolOutput:
    return ToolOutput.text("\n".join(f"- {line}" for line in lines) or NOTHING)
