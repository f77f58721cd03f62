"""Chooses between text-only and tool prompts for a local model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import replace
from hermes.core.messages import Text, ToolMessage, Usage
from hermes.core.prompt import Delta, Notice, Prompt, Reply, TextDelta
from hermes.providers.embedded.asking import EngineClient
from hermes.providers.embedded.fitting import SYSTEM_SHARE, PromptFitter
from hermes.providers.embedded.imposing import ConstrainedTools
from hermes.providers.embedded.wording import describe_tools, without_tools

# The rest of the instruction share is for the system text.
_TOOLS_SHARE = 0.5
_ELLIPSIS = " …"
NO_ANSWER = "(no answer)"
# The same model gets the same prompt, so waiting between attempts changes nothing.
_TRIES = 2


class ToolModeChooser:
    """`reduced` is for small models: no tools, and a reply that reaches its limit ends there,
    because more would be repetition."""

    def __init__(self, asking: EngineClient, fitting: PromptFitter, *, reduced: bool) -> None:
        self._asking = asking
        self._fitting = fitting
        self._reduced = reduced
        self._imposing = ConstrainedTools(asking.reply)
        self._reported_no_tools = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if notice := self._no_tools_notice(prompt):
            yield notice
        spent = Usage()
        for left in reversed(range(_TRIES)):
            async with aclosing(self._answer(prompt)) as items:
                async for item in items:
                    if not isinstance(item, Reply):
                        yield item
                        continue
                    spent += item.usage
                    if not _is_empty(item, prompt):
                        yield replace(item, usage=spent)
                        return
                    if not left:
                        yield TextDelta(text=NO_ANSWER)
                        yield replace(_append_text(item, NO_ANSWER), usage=spent)

    def _answer(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if self._reduced or not prompt.tools or not self._tools_fit(prompt):
            return self._reply_without_tools(prompt)
        return self._imposing.reply(self._shorten_system(prompt))

    async def _reply_without_tools(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._asking.reply(without_tools(prompt))) as items:
            async for item in items:
                if self._reduced and isinstance(item, Reply) and item.message.stop == "length":
                    yield TextDelta(text=_ELLIPSIS)
                    yield _append_text(item, _ELLIPSIS)
                else:
                    yield item

    def _tools_fit(self, prompt: Prompt) -> bool:
        tools = self._fitting.tokens(describe_tools(prompt.tools))
        return tools <= self._fitting.budget * _TOOLS_SHARE

    def _shorten_system(self, prompt: Prompt) -> Prompt:
        """Shortens the system text so that the tools fit after it."""
        tools = self._fitting.tokens(describe_tools(prompt.tools))
        available = int(self._fitting.budget * SYSTEM_SHARE) - tools
        return replace(prompt, system=self._fitting.clip(prompt.system, available))

    def _no_tools_notice(self, prompt: Prompt) -> Notice | None:
        """Reported once, because the user may expect tools."""
        if self._reported_no_tools or self._reduced or not prompt.tools or self._tools_fit(prompt):
            return None
        self._reported_no_tools = True
        return Notice(
            text=f"The model's window ({self._fitting.window} tokens) is too small for the tools;"
            " it answers without them.",
            kind="warn",
        )


def _append_text(reply: Reply, text: str) -> Reply:
    """The reply with this text at its end, marked as complete."""
    parts = (*reply.message.parts, Text(text=text))
    return replace(reply, message=replace(reply.message, parts=parts, stop="done"))


def _is_empty(reply: Reply, prompt: Prompt) -> bool:
    """An empty reply after tool results is not final: the model continues when reminded of its
    task."""
    message = reply.message
    after_results = bool(prompt.messages) and isinstance(prompt.messages[-1], ToolMessage)
    silent = not message.text.strip() and not message.calls and message.stop == "done"
    return silent and not after_results
