"""Answers requests from a recording, and installs an interceptor for a provider's requests."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Protocol

from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.net.addresses import host_of
from hermes.net.http import HttpResponse, Interceptor, ResponseContext, current_interceptor
from hermes.net.http11 import ProtocolError
from hermes.providers.recorded.frames import RecordedExchange
from hermes.providers.recorded.tape import is_model_call

NOT_SENT = "A replay sends no requests; this one was not sent."


class ReplayControl(Protocol):
    """The replay driver, as the player needs it."""

    async def on_request(self, recorded: RecordedExchange | None, url: str, body: bytes) -> None:
        """Handle a request; `recorded` is None when the tape has no more. Return when it may be
        answered."""
        ...

    async def wait_until_abandoned(self) -> None:
        """Wait where the recorded response was not read further. Return when nothing ends the
        wait."""
        ...

    def advance(self, seconds: float) -> None:
        """Advance the clock of the running task."""
        ...


class TapePlayer:
    """The interceptor of a replay."""

    def __init__(self, exchanges: Sequence[RecordedExchange], control: ReplayControl) -> None:
        self._left = list(exchanges)
        self._control = control

    @property
    def upcoming(self) -> RecordedExchange | None:
        return self._left[0] if self._left else None

    @asynccontextmanager
    async def exchange(
        self, url: str, body: bytes, real: Callable[[], ResponseContext]
    ) -> AsyncIterator[HttpResponse]:
        if not is_model_call(url):
            raise ProviderError(NOT_SENT, reason="timeout", unsent=True)
        recorded = self._left.pop(0) if self._left else None
        await self._control.on_request(recorded, url, body)
        if recorded is None:
            raise ProviderError(NOT_SENT, reason="timeout", unsent=True)
        if fault := recorded.fault:
            raise ProviderError(
                fault.message, reason=fault.reason, retryable=fault.retryable, unsent=fault.unsent
            )
        if not recorded.status:
            await self._control.wait_until_abandoned()
            raise ProviderError(
                "The request was abandoned before the response began.", reason="cut"
            )
        yield HttpResponse(PlayedResponse(recorded, self._control), host_of(url), seconds=0)


class PlayedResponse:
    """A recorded response, piece by piece as it arrived."""

    reusable = False

    def __init__(self, recorded: RecordedExchange, control: ReplayControl) -> None:
        self.status = recorded.status
        self.headers = recorded.headers
        self._recorded = recorded
        self._control = control
        self._pieces = recorded.pieces()
        self._times = iter(recorded.times)
        self._pass_time()

    async def read(self, seconds: float) -> bytes:
        for piece in self._pieces:
            self._pass_time()
            return piece
        match self._recorded.ending:
            case "whole":
                return b""
            case "left":
                await self._control.wait_until_abandoned()
                return b""
            case "timeout":
                raise TimeoutError
            case "protocol":
                raise ProtocolError("the connection ended before the response did")
            case "connection":
                raise ConnectionResetError
            case "network":
                raise OSError

    def _pass_time(self) -> None:
        self._control.advance(next(self._times, 0) / 1000)


class InterceptedProvider:
    """The outermost wrapper: covers retries, other keys and other models."""

    def __init__(self, inner: Provider, interceptor: Interceptor) -> None:
        self._inner = inner
        self._interceptor = interceptor

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        token = current_interceptor.set(self._interceptor)
        try:
            async with aclosing(self._inner.reply(prompt)) as items:
                async for item in items:
                    yield item
        finally:
            # If another task closes the generator, there is nothing to reset.
            with suppress(ValueError):
                current_interceptor.reset(token)
