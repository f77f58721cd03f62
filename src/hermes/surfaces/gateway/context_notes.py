"""What the model should know about a chat without answering it: messages to others, reactions, and
what Hermes itself sent there."""

from __future__ import annotations

from hermes.core.commands import AddContext
from hermes.core.errors import SessionBusy
from hermes.surfaces.gateway.chat_turn import MessageBuilder
from hermes.surfaces.gateway.context_prompt import data
from hermes.surfaces.gateway.pending import INTERNAL, ChatDeps, Pending
from hermes.surfaces.gateway.platform import Inbound
from hermes.surfaces.gateway.routes import ChatRoute

# The key of an event that stands for text which Hermes sent to the chat.
MIRRORED = f"{INTERNAL}mirror:"
MAX_QUOTE_CHARS = 200


class ContextNotes:
    """Adds such text to the session of one conversation."""

    def __init__(self, key: str, deps: ChatDeps, builder: MessageBuilder) -> None:
        self._key = key
        self._deps = deps
        self._builder = builder

    async def add(self, pending: Pending) -> None:
        """Add the text of an event that asks for no answer; durable when this returns."""
        event, deps = pending.event, self._deps
        route = await deps.routes.find(self._key)
        if route is None and event.reaction:
            # A conversation does not begin with a reaction.
            return
        if route is None:
            route = await deps.routes.open(self._key, event, deps.app.context.world.clock.now())
        command = AddContext(text=await self._text(pending), origin=_origin(event), key=event.key)
        await self._send(pending, route, command)

    async def _text(self, pending: Pending) -> str:
        event = pending.event
        if event.key.startswith(MIRRORED):
            return f"[Hermes sent this text to the chat:]\n{event.text}"
        name = data(event.sender.name or event.sender.id)
        if event.reaction:
            return f"[{name} reacted to your message with {data(event.reaction)}.]"
        content, _ = await self._builder.content(pending)
        return f"[{name} wrote in this chat, but not to you:]\n{content}"

    async def _send(self, pending: Pending, route: ChatRoute, command: AddContext) -> None:
        request = self._builder.request(pending, route, text="")
        try:
            async with self._deps.executor.session(request) as session:
                await session.send(command)
        except SessionBusy:
            # Another process has the session open and reads its inbox.
            await self._deps.app.journal.post(route.session_id, command)


def _origin(event: Inbound) -> str:
    """Whose text it is, for the policy."""
    if event.key.startswith(MIRRORED):
        return "job"
    return f"message:{event.address.platform}"
