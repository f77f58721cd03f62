"""Fires the hooks around requests to models."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.core.errors import ProviderError
from hermes.core.events import CallSettled, ModelCalled
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.world import Clock
from hermes.hooks.session import SessionHooks, history

EndpointOf = Callable[[str, str], tuple[str, str]]


class RequestHooks:
    """For one session. `where` returns base URL and wire format of a model and provider."""

    def __init__(
        self, hooks: SessionHooks, *, clock: Clock, where: EndpointOf, attempts: int
    ) -> None:
        self._hooks = hooks
        self._clock = clock
        self._where = where
        self._attempts = attempts
        self._count = 0
        self._prompt: Prompt | None = None
        self._request_facts: JsonObject = {}
        self._began = 0.0
        self._attempt_count = 0
        self._failure: ProviderError | None = None

    async def reply(self, inner: Provider, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        self._prompt, self._attempt_count, self._failure = prompt, 0, None
        try:
            async with aclosing(inner.reply(prompt)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        await self._report_reply(part)
                    yield part
        except ProviderError as error:
            self._failure = error
            await self._report_failure()
            raise

    async def on_request(self, call: ModelCalled) -> None:
        """Called before a request; a pending failure is reported first."""
        await self._report_failure()
        prompt = self._prompt
        self._count += 1
        self._attempt_count += 1
        self._began = self._clock.monotonic()
        if prompt is None:
            return
        url, wire = self._where(call.model, call.provider)
        self._request_facts = {
            "api_request_id": call.call,
            "model": call.model,
            "provider": call.provider,
            "base_url": url,
            "api_mode": wire,
            "api_call_count": self._count,
            "message_count": len(prompt.messages),
            "tool_count": len(prompt.tools),
            "approx_input_tokens": call.reserved.input if call.reserved else 0,
            "max_tokens": prompt.max_tokens,
            "started_at": self._clock.now(),
        }
        if self._hooks.listens("pre_api_request"):
            messages = history(prompt.messages)
            await self._hooks.fire(
                "pre_api_request", **self._request_facts, request_messages=messages
            )

    def on_settled(self, _settled: CallSettled) -> None:
        """Called after a request; captures the error that is being raised."""
        error = sys.exception()
        if isinstance(error, ProviderError):
            self._failure = error

    async def _report_reply(self, reply: Reply) -> None:
        message = reply.message
        await self._hooks.fire(
            "post_api_request",
            **self._request_facts,
            api_duration=self._clock.monotonic() - self._began,
            finish_reason=message.stop,
            usage=plain(reply.usage),
            response_model=reply.model,
            assistant_content_chars=len(message.text),
            assistant_tool_call_count=len(message.calls),
        )

    async def _report_failure(self) -> None:
        error, self._failure = self._failure, None
        if error is None:
            return
        await self._hooks.fire(
            "api_request_error",
            **self._request_facts,
            status_code=error.status,
            retry_count=max(0, self._attempt_count - 1),
            max_retries=self._attempts,
            retryable=error.retryable,
            reason=error.reason,
            error={"type": type(error).__name__, "message": str(error)},
        )
