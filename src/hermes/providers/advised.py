"""Says of a failure who failed, where, and what to do next, as soon as nothing else helps."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from hermes.core.errors import ProviderError
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.providers.endpoint import Endpoint
from hermes.providers.learned import Lessons
from hermes.providers.reasons import ADVICE

# The short hints at the end of what the network says.
_HINT = (
    r"(?:; try again|[;:] check the network(?: and proxy)?|: is the server running\?"
    r"|; give your .*)\.?$"
)

Advice = Callable[[ProviderError], str]


class Advised:
    """Outermost of the ways to one model. `advice` gives the next steps that suit the error; ""
    leaves those that it has already. `lessons` hear of it, for the next time."""

    def __init__(
        self, inner: Provider, endpoint: Endpoint, advice: Advice, lessons: Lessons | None = None
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
                self._lessons.failed(error)
            error.args = (self._words(error),)
            raise

    def _words(self, error: ProviderError) -> str:
        """The cause stays; the usual advice gives way to the better one."""
        cause, at = str(error), self._endpoint
        if at.model not in cause:
            cause = f"{at.name} ({at.host}, {at.model}): {cause}"
        steps = self._advice(error)
        if not steps:
            return cause
        cause = re.sub(_HINT, ".", cause.removesuffix(ADVICE[error.reason]).rstrip())
        return f"{cause} {steps}"
