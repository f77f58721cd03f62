"""Reports tool calls that a model with native calls wrote as text."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hermes.codec.values import replace
from hermes.core.messages import ToolCall
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply, Restarted

# Openers of calls that ordinary text does not contain. Most replies contain none of them, and the
# parser is not loaded.
_TOKENS = (
    "<tool_call", "<tool_use>", "<function_call", "<functioncall>", "<function=", "<function name=",
    "<invoke name=", "antml:invoke", "<minimax:tool_call", "<seed:tool_call", "<|tool_call",
    "<|python_",
    "<|channel|>commentary to=", "<|START_ACTION|>", "<|action_start|>", "<TOOLCALL>",
    "<start_function_call>", "<｜tool", "<｜DSML｜", "[TOOL_CALLS]", "✿FUNCTION✿",
    "\nAction Input:", "```tool_c",
)  # fmt: skip
WRITTEN_AS_TEXT = "it was written as text; make it as a tool call"


class StrayCallProvider:
    """Turns calls in the text of a reply into unusable ones, so that the model is told and no
    person gets markup as the answer. They never run: a model that can make native calls may only
    be quoting."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        async with aclosing(self._inner.reply(prompt)) as stream:
            async for item in stream:
                if isinstance(item, Reply) and _may_contain_call(prompt, item):
                    for made in await _report_calls(prompt, item):
                        yield made
                else:
                    yield item


def _may_contain_call(prompt: Prompt, reply: Reply) -> bool:
    if not prompt.tools or prompt.text_only or reply.message.calls:
        return False
    text = reply.message.text
    return any(token in text for token in _TOKENS)


async def _report_calls(prompt: Prompt, reply: Reply) -> list[Delta | Reply]:
    from hermes.providers.textcalls.provider import TextCallProvider

    async with aclosing(TextCallProvider(_GivenReply(reply)).reply(prompt)) as stream:
        *deltas, last = [item async for item in stream]
    assert isinstance(last, Reply)
    if not last.message.calls:
        return [reply]
    parts = tuple(
        replace(p, arguments={}, broken=p.broken or WRITTEN_AS_TEXT)
        if isinstance(p, ToolCall)
        else p
        for p in last.message.parts
    )
    return [Restarted(), *deltas, replace(last, message=replace(last.message, parts=parts))]


class _GivenReply:
    """A provider that gives one reply."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    async def reply(self, _prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        yield self._reply
