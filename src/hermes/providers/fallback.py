"""Falls back to other models when one fails, and adds advice to final errors."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing

from hermes.codec.values import Value
from hermes.core.errors import ProviderError, Reason
from hermes.core.messages import UserMessage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.core.world import Clock
from hermes.providers.completion import EMPTY
from hermes.providers.context_window import WindowLearner
from hermes.providers.endpoint import Endpoint
from hermes.providers.failure_patterns import ADVICE, CAUSE, RETRYABLE
from hermes.providers.retry import RetryMode
from hermes.providers.wire.usage import estimate_prompt_tokens

COOLDOWN_SECONDS = 60.0
MAX_COOLDOWN_SECONDS = 24 * 3600.0
# After these errors an immediate retry cannot help; other errors may be gone by the next turn.
COOLDOWN_REASONS: frozenset[Reason] = frozenset(("rate_limit", "upstream_rate_limit", "billing"))


class Cooldown(Value):
    """A pause of a model after an error."""

    until: float  # monotonic time
    reason: Reason


class ModelCooldowns:
    """The cooldowns of models. They are keyed by a name that is the same in all sessions, such as
    provider, address and model."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cooldowns: dict[str, Cooldown] = {}

    def note(self, who: str, error: ProviderError) -> None:
        """Start a cooldown for rate-limit and billing errors: as long as the server said, else a
        minute. A cooldown is never shortened."""
        if error.reason not in COOLDOWN_REASONS:
            return
        seconds = COOLDOWN_SECONDS if error.retry_after is None else error.retry_after
        self.start(who, seconds, error.reason)

    def start(self, who: str, seconds: float, reason: Reason) -> None:
        until = self._clock.monotonic() + min(seconds, MAX_COOLDOWN_SECONDS)
        known = self._cooldowns.get(who)
        if known is None or known.until < until:
            self._cooldowns[who] = Cooldown(until=until, reason=reason)

    def remaining_seconds(self, who: str) -> float:
        """Return the remaining seconds; 0 if there is no cooldown."""
        rest = self._cooldowns.get(who)
        return max(0.0, rest.until - self._clock.monotonic()) if rest is not None else 0.0

    def reason(self, who: str) -> Reason:
        rest = self._cooldowns.get(who)
        return rest.reason if rest is not None else "unknown"

    def end(self, who: str) -> None:
        """End the cooldown after a successful reply."""
        self._cooldowns.pop(who, None)


# After one of these errors another model may succeed. Excluded are errors of the conversation
# itself and invalid certificates.
FALLBACK_REASONS: frozenset[Reason] = RETRYABLE | frozenset(
    (
        "auth", "auth_permanent", "billing", "model_not_found", "provider_policy_blocked",
        "content_policy_blocked",
    )
)  # fmt: skip


# Errors of a model that could answer at another moment.
BUSY_REASONS: frozenset[Reason] = frozenset(
    ("rate_limit", "upstream_rate_limit", "overloaded", "server_error", "cut")
)


class FallbackLink:
    """One model in the chain."""

    def __init__(
        self,
        who: str,  # its key in the cooldowns
        *,
        model: str,
        provider: str,
        window: int,  # 0 if unknown
        build: Callable[[RetryMode], Provider],  # builds the provider on first use
    ) -> None:
        self.who = who
        self.model = model
        self.provider = provider
        self.window = window
        self._build = build
        self._mode = RetryMode()
        self._built: Provider | None = None

    def connect(self, *, eager: bool = False) -> Provider:
        """Build the provider on first use and return it. With `eager`, it fails early instead of
        waiting, because another model can take over."""
        self._mode.eager = eager
        self._built = self._built or self._build(self._mode)
        return self._built

    def __str__(self) -> str:
        return f"{self.model} ({self.provider})"


class Fallback:
    """Asks the next model of a chain when one fails. The first link is the chosen model. A turn
    starts with it unless it is in cooldown, and stays with the model that took over. A switch is
    announced in each turn, the return once. If all fail, the first error of the reply is raised."""

    def __init__(
        self,
        chain: Sequence[FallbackLink],
        cooldowns: ModelCooldowns,
        *,
        reasons: frozenset[Reason] = FALLBACK_REASONS,
    ) -> None:
        self._chain = tuple(chain)
        self._reasons = reasons
        self._cooldowns = cooldowns
        self._index = 0
        self._announced = ""
        self._switched = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if prompt.messages and isinstance(prompt.messages[-1], UserMessage):
            # A turn starts.
            self._index, self._announced = 0, ""
        tries = _Attempts()
        for index, provider in self._candidates(prompt, tries):
            link = self._chain[index]
            if index > 0 and self._announced != link.who:
                self._announced = link.who
                yield Notice(text=f"{self._why(tries)}; continuing with {link}.", kind="warn")
            if tries.streamed:
                tries.streamed = False
                yield Restarted()
            error: ProviderError | None = None
            try:
                async with aclosing(provider.reply(prompt)) as stream:
                    async for item in stream:
                        if isinstance(item, Reply):
                            if tries.has_more and is_empty_reply(item):
                                why = item.message.text.removeprefix(EMPTY).strip()
                                text = f"{link} sent no reply. {why}"
                                error = ProviderError(text, reason="unknown", status=200)
                                break
                            for notice in self._settle(index):
                                yield notice
                        elif not isinstance(item, Notice):
                            tries.streamed = True
                        yield item
            except ProviderError as raised:
                error = raised
            if error is None:
                return
            tries.error, tries.by = error, link
            tries.first = tries.first or error
            self._cooldowns.note(link.who, error)
            if error.reason not in self._reasons:
                raise error
        # A window that is too small comes first: a shorter conversation could go on there.
        verdict = tries.small or tries.first
        assert verdict is not None
        raise verdict

    def _candidates(self, prompt: Prompt, tries: _Attempts) -> Iterator[tuple[int, Provider]]:
        """Yield the models to ask, in order: those without a cooldown whose window fits, else all
        that fit. Only the last one retries fully; if it fails too, the first is asked again with
        full retries where that can help."""
        indexes = self._fitting(prompt, tries)
        rests = self._cooldowns.remaining_seconds
        chosen = [index for index in indexes if not rests(self._chain[index].who)] or indexes
        for number, index in enumerate(chosen):
            tries.has_more = number + 1 < len(chosen)
            yield index, self._chain[index].connect(eager=tries.has_more)
        if len(chosen) > 1 and tries.first is not None and tries.first.retryable:
            yield chosen[0], self._chain[chosen[0]].connect()

    def _fitting(self, prompt: Prompt, tries: _Attempts) -> list[int]:
        indexes = list(range(self._index, len(self._chain)))
        smallest = min((self._chain[index].window or 1 << 60 for index in indexes[1:]), default=0)
        first = self._chain[indexes[0]].window
        if not smallest or (first and smallest >= first):
            return indexes
        tokens = estimate_prompt_tokens(prompt)
        small = [index for index in indexes[1:] if 0 < self._chain[index].window < tokens]
        if small:
            link = self._chain[max(small, key=lambda index: self._chain[index].window)]
            tries.small = ProviderError(
                f"{link} has a window of {link.window} tokens, but the conversation"
                f" has about {tokens}. Use /compress, or start over with /new.",
                reason="context_overflow",
                limit=link.window,
            )
        return [index for index in indexes if index not in small]

    def _settle(self, index: int) -> Iterator[Notice]:
        """Record that this model answered, and use it for the rest of the turn."""
        if self._switched and index == 0:
            yield Notice(text=f"{self._chain[0]} is available again.", kind="warn")
        self._index, self._switched = index, index > 0
        self._cooldowns.end(self._chain[index].who)

    def _why(self, tries: _Attempts) -> str:
        if tries.error is not None and tries.by is not None:
            return f"{tries.by} {CAUSE[tries.error.reason]}"
        chosen = self._chain[0]
        seconds = self._cooldowns.remaining_seconds(chosen.who)
        reason = self._cooldowns.reason(chosen.who)
        return f"{chosen} {CAUSE[reason]} and is paused for {max(1, round(seconds))} s"


class _Attempts:
    """The attempts for one reply."""

    def __init__(self) -> None:
        self.first: ProviderError | None = None
        self.error: ProviderError | None = None  # the newest one
        self.by: FallbackLink | None = None  # who failed last
        self.small: ProviderError | None = None  # of the largest window that was too small
        self.streamed = False
        self.has_more = False


def is_empty_reply(reply: Reply) -> bool:
    """Return whether the reply is only a placeholder for a missing reply."""
    return not reply.message.calls and reply.message.text.startswith(EMPTY)


# Hints at the end of network errors, replaced when better advice exists.
_HINT = (
    r"(?:; try again|[;:] check the network(?: and proxy)?|: is the server running\?"
    r"|; configure your .*)\.?$"
)

Advice = Callable[[ProviderError], str]


class ErrorAdvisor:
    """Adds advice to the errors of one model. `advice` returns next steps for the error, or "" to
    keep the existing ones. `window_learner` stores the context window that an error reveals."""

    def __init__(
        self,
        inner: Provider,
        endpoint: Endpoint,
        advice: Advice,
        window_learner: WindowLearner | None = None,
    ) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._advice = advice
        self._window_learner = window_learner

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        try:
            async with aclosing(self._inner.reply(prompt)) as stream:
                async for item in stream:
                    yield item
        except ProviderError as error:
            if self._window_learner is not None:
                self._window_learner.record_error(error)
            error.args = (self._describe(error),)
            raise

    def _describe(self, error: ProviderError) -> str:
        """Keep the cause and replace the generic advice."""
        cause, endpoint = str(error), self._endpoint
        if endpoint.model not in cause:
            cause = f"{endpoint.name} ({endpoint.host}, {endpoint.model}): {cause}"
        steps = self._advice(error)
        if not steps:
            return cause
        cause = re.sub(_HINT, ".", cause.removesuffix(ADVICE[error.reason]).rstrip())
        return f"{cause} {steps}"
