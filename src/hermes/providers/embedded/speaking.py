"""Chooses how a local model is spoken to: in words only, or with tools if they have room."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import replace
from hermes.core.messages import Text, ToolMessage, Usage
from hermes.core.prompt import Delta, Notice, Prompt, Reply, TextDelta
from hermes.providers.embedded.asking import Asking
from hermes.providers.embedded.fitting import SYSTEM_SHARE, Fitting
from hermes.providers.embedded.imposing import Imposing
from hermes.providers.embedded.wording import in_words, tools_in_words

# The rest of the share of instructions is for the system text.
_TOOLS_SHARE = 0.5
_ELLIPSIS = " …"
NO_ANSWER = "(no answer)"
# The same question to the same model on the same machine: waiting between tries changes nothing.
_TRIES = 2


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
        spent = Usage()
        for left in reversed(range(_TRIES)):
            async with aclosing(self._answer(prompt)) as items:
                async for item in items:
                    if not isinstance(item, Reply):
                        yield item
                        continue
                    spent += item.usage
                    if not _says_nothing(item, prompt):
                        yield replace(item, usage=spent)
                        return
                    if not left:
                        yield TextDelta(text=NO_ANSWER)
                        yield replace(_extended(item, NO_ANSWER), usage=spent)

    def _answer(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if self._reduced or not prompt.tools or not self._has_room(prompt):
            return self._words(prompt)
        return self._imposing.reply(self._roomy(prompt))

    async def _words(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._asking.reply(in_words(prompt))) as items:
            async for item in items:
                if self._reduced and isinstance(item, Reply) and item.message.stop == "length":
                    yield TextDelta(text=_ELLIPSIS)
                    yield _extended(item, _ELLIPSIS)
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


def _extended(reply: Reply, text: str) -> Reply:
    """The reply with these words at its end, and complete with them."""
    parts = (*reply.message.parts, Text(text=text))
    return replace(reply, message=replace(reply.message, parts=parts, stop="done"))


def _says_nothing(reply: Reply, prompt: Prompt) -> bool:
    """Silence after results is no end: a model that is reminded of its task goes on."""
    message = reply.message
    after_results = bool(prompt.messages) and isinstance(prompt.messages[-1], ToolMessage)
    silent = not message.text.strip() and not message.calls and message.stop == "done"
    return silent and not after_results
