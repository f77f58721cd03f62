"""Chooses how a local model is spoken to: in words only, or with tools if they have room."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import replace
from hermes.core.messages import Text
from hermes.core.prompt import Delta, Notice, Prompt, Reply, TextDelta
from hermes.providers.embedded.asking import Asking
from hermes.providers.embedded.fitting import SYSTEM_SHARE, Fitting
from hermes.providers.embedded.imposing import Imposing
from hermes.providers.embedded.wording import in_words, tools_in_words

# The rest of the share of instructions is for the system text.
_TOOLS_SHARE = 0.5
_ELLIPSIS = " …"


class Speaking:
    """`reduced` is the way of small models: no tools, and an answer that reaches its limit ends
    there, because more would be more of the same."""

    def __init__(self, asking: Asking, fitting: Fitting, *, reduced: bool) -> None:
        self._asking = asking
        self._fitting = fitting
        self._reduced = reduced
        self._imposing = Imposing(asking.reply)
        self._told_crowded = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if notice := self._crowding(prompt):
            yield notice
        with_tools = not self._reduced and bool(prompt.tools) and self._has_room(prompt)
        stream = self._imposing.reply(self._roomy(prompt)) if with_tools else self._words(prompt)
        async with aclosing(stream) as items:
            async for item in items:
                yield item

    async def _words(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._asking.reply(in_words(prompt))) as items:
            async for item in items:
                if self._reduced and isinstance(item, Reply) and item.message.stop == "length":
                    yield TextDelta(text=_ELLIPSIS)
                    yield _ended(item)
                else:
                    yield item

    def _has_room(self, prompt: Prompt) -> bool:
        tools = self._fitting.tokens(tools_in_words(prompt.tools))
        return tools <= self._fitting.budget * _TOOLS_SHARE

    def _roomy(self, prompt: Prompt) -> Prompt:
        """The tools come after the system text; that is shortened before it crowds them out."""
        tools = self._fitting.tokens(tools_in_words(prompt.tools))
        room = int(self._fitting.budget * SYSTEM_SHARE) - tools
        return replace(prompt, system=self._fitting.clipped(prompt.system, room))

    def _crowding(self, prompt: Prompt) -> Notice | None:
        """Told once, to the person who might expect tools."""
        if self._told_crowded or self._reduced or not prompt.tools or self._has_room(prompt):
            return None
        self._told_crowded = True
        return Notice(
            text=f"The model's window ({self._fitting.window} tokens) has no room for the tools;"
            " it answers without them.",
            kind="warn",
        )


def _ended(reply: Reply) -> Reply:
    parts = (*reply.message.parts, Text(text=_ELLIPSIS))
    return replace(reply, message=replace(reply.message, parts=parts, stop="done"))
