"""Detects prompts that a local server truncates silently, and explains its refusals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.core.errors import ProviderError
from hermes.core.messages import Usage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply
from hermes.providers.endpoint import Endpoint
from hermes.providers.http import HttpClient
from hermes.providers.local.counting import TokenLowerBound
from hermes.providers.local.refusals import explain_refusal
from hermes.providers.local.window import ServerWindow, query_window
from hermes.providers.wire.usage import estimate_prompt_tokens

# Smaller differences are noise.
_LEAST = 256
_SURPLUS = 1.1
# Two counts suggest the same window when the smaller is at least this part of the larger.
_ALIKE = 0.5


class LocalServerProvider:
    """One per session, around a single request. A server that counts fewer tokens than the prompt
    must have has truncated it. That is reported once, with the window and how to raise it, and
    passed to `learned`. Some servers count only uncached tokens, so the window is looked up; where
    it is unknown, two consecutive counts must agree."""

    def __init__(
        self,
        inner: Provider,
        endpoint: Endpoint,
        *,
        http: HttpClient,
        learned: Callable[[int], None] | None = None,
    ) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._http = http
        self._learned = learned
        self._counting = TokenLowerBound()
        self._reported = False
        self._doubted = 0

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        failed: ProviderError | None = None
        try:
            async with aclosing(self._inner.reply(prompt)) as stream:
                async for item in stream:
                    if isinstance(item, Reply) and (notice := await self._check(prompt, item)):
                        yield notice
                    yield item
        except ProviderError as error:
            failed = explain_refusal(error, self._endpoint)
        if failed is not None:
            raise failed

    async def _check(self, prompt: Prompt, reply: Reply) -> Notice | None:
        if self._reported or not self._fell_short(prompt, reply.usage):
            return None
        asked = await query_window(self._http, self._endpoint)
        tokens = self._window(asked, prompt, reply.usage)
        if tokens is None:
            return None
        self._reported = True
        if self._learned is not None:
            self._learned(tokens)
        return _truncation_notice(asked, tokens, prompt)

    def _fell_short(self, prompt: Prompt, usage: Usage) -> bool:
        if usage.estimated or usage.requests != 1 or not usage.prompt:
            return False
        least = self._counting.of_prompt(prompt)
        return least > usage.prompt * _SURPLUS and least - usage.prompt > _LEAST

    def _window(self, asked: ServerWindow, prompt: Prompt, usage: Usage) -> int | None:
        """The window that truncated the prompt; None without proof."""
        if asked.tokens is not None:
            return asked.tokens if asked.tokens < estimate_prompt_tokens(prompt) else None
        before, self._doubted = self._doubted, usage.prompt
        low, high = sorted((before, usage.prompt))
        return high if low >= high * _ALIKE and low > _LEAST else None


def _truncation_notice(asked: ServerWindow, tokens: int, prompt: Prompt) -> Notice:
    wanted = _next_size(estimate_prompt_tokens(prompt) * 2)
    about = "" if asked.tokens is not None else "about "
    return Notice(
        text=f"{asked.label} truncated the start of the conversation: its window is"
        f" {about}{tokens} tokens. To raise it, {asked.advice(wanted)}.",
        kind="warn",
    )


def _next_size(tokens: int) -> int:
    size = 8_192
    while size < tokens:
        size *= 2
    return size
