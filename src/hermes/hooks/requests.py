"""Fires the hooks around requests to models."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.core.errors import ProviderError
from hermes.core.events import CallSettled, ModelCalled
from hermes.core.messages import Usage
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.world import Clock
from hermes.hooks.session import SessionHooks, history

if TYPE_CHECKING:
    from hermes.providers.endpoint import Endpoint

FindEndpoint = Callable[[str, str], "Endpoint | None"]


class RequestHooks:
    """Fires the hooks around the model requests of one session. `find_endpoint` takes a model and a
    provider."""

    def __init__(
        self, hooks: SessionHooks, *, clock: Clock, find_endpoint: FindEndpoint, attempts: int
    ) -> None:
        self._hooks = hooks
        self._clock = clock
        self._find_endpoint = find_endpoint
        self._attempts = attempts
        self._count = 0
        self._prompt: Prompt | None = None
        self._request_facts: JsonObject = {}
        self._began = 0.0
        self._attempt_count = 0
        self._failure: ProviderError | None = None

    def wrap_provider(self, inner: Provider) -> Provider:
        return _HookedProvider(self, inner)

    def wrap_meter(self, meter: Meter) -> Meter:
        return _HookedMeter(self, meter)

    async def reply(self, inner: Provider, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        self._prompt, self._attempt_count, self._failure = prompt, 0, None
        try:
            async with aclosing(inner.reply(prompt)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        message = part.message
                        await self._hooks.fire(
                            "post_api_request",
                            **self._request_facts,
                            api_duration=self._clock.monotonic() - self._began,
                            finish_reason=message.stop,
                            usage=plain(part.usage),
                            response_model=part.model,
                            assistant_content_chars=len(message.text),
                            assistant_tool_call_count=len(message.calls),
                        )
                    yield part
        except ProviderError as error:
            self._failure = error
            await self._report_failure()
            raise

    async def on_request(self, call: ModelCalled) -> None:
        """Fire the hooks before a request; a pending failure is reported first."""
        await self._report_failure()
        prompt = self._prompt
        self._count += 1
        self._attempt_count += 1
        self._began = self._clock.monotonic()
        if prompt is None:
            return
        endpoint = self._find_endpoint(call.model, call.provider)
        self._request_facts = {
            "api_request_id": call.call,
            "model": call.model,
            "provider": call.provider,
            "base_url": endpoint.url if endpoint else "",
            "api_mode": endpoint.api_mode if endpoint else "",
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

    def on_settled(self) -> None:
        """Keep the error that is being raised, if any, to report it later."""
        error = sys.exception()
        if isinstance(error, ProviderError):
            self._failure = error

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


class _HookedProvider:
    def __init__(self, hooks: RequestHooks, inner: Provider) -> None:
        self._hooks = hooks
        self._inner = inner

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        return self._hooks.reply(self._inner, prompt)


class _HookedMeter:
    def __init__(self, hooks: RequestHooks, inner: Meter) -> None:
        self._hooks = hooks
        self._inner = inner

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        granted = await self._inner.reserve(call, least)
        await self._hooks.on_request(call)
        return granted

    def settle(self, settled: CallSettled) -> None:
        self._hooks.on_settled()
        self._inner.settle(settled)
