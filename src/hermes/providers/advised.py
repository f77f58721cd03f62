"""Adds provider, host, model and advice to an error that reaches the user."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.providers.endpoint import Endpoint
from hermes.providers.learned import WindowLearner
from hermes.providers.reasons import ADVICE

# Hints at the end of network errors, replaced when better advice exists.
_HINT = (
    r"(?:; try again|[;:] check the network(?: and proxy)?|: is the server running\?"
    r"|; configure your .*)\.?$"
)

Advice = Callable[[ProviderError], str]


class ErrorAdvisor:
    """The outermost wrapper of one model. `advice` returns next steps for the error, or "" to keep
    the existing ones. `lessons` records what the error says about the context window."""

    def __init__(
        self,
        inner: Provider,
        endpoint: Endpoint,
        advice: Advice,
        lessons: WindowLearner | None = None,
    ) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._advice = advice
        self._lessons = lessons

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        try:
            async with aclosing(self._inner.reply(prompt)) as stream:
                async for item in stream:
                    yield item
        except ProviderError as error:
            if self._lessons is not None:
                self._lessons.record_error(error)
            error.args = (self._describe(error),)
            raise

    def _describe(self, error: ProviderError) -> str:
        """Keeps the cause and replaces the generic advice."""
        cause, endpoint = str(error), self._endpoint
        if endpoint.model not in cause:
            cause = f"{endpoint.name} ({endpoint.host}, {endpoint.model}): {cause}"
        steps = self._advice(error)
        if not steps:
            return cause
        cause = re.sub(_HINT, ".", cause.removesuffix(ADVICE[error.reason]).rstrip())
        return f"{cause} {steps}"
