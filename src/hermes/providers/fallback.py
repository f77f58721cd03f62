"""Falls back to another model when one fails: announced, in order, and for one turn only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing

from hermes.core.errors import ProviderError, Reason
from hermes.core.messages import UserMessage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted
from hermes.providers.cooldowns import Cooldowns
from hermes.providers.reasons import CAUSE
from hermes.providers.unfinished import EMPTY
from hermes.providers.ways import Way
from hermes.providers.wire.usage import guessed_tokens

# After one of these errors another model may succeed. Excluded are errors of the conversation
# itself and invalid certificates.
PASSED_ON: frozenset[Reason] = frozenset(
    (
        "auth",
        "auth_permanent",
        "billing",
        "rate_limit",
        "upstream_rate_limit",
        "overloaded",
        "server_error",
        "timeout",
        "model_not_found",
        "provider_policy_blocked",
        "content_policy_blocked",
        "cut",
        "unknown",
    )
)


class Link:
    """One model in the chain. `who` is its key in Cooldowns, `open` builds the provider on demand,
    and a window of 0 is unknown."""

    def __init__(
        self, who: str, *, model: str, provider: str, window: int, open: Callable[[], Way]
    ) -> None:
        self.who = who
        self.model = model
        self.provider = provider
        self.window = window
        self._open = open
        self._way: Way | None = None

    @property
    def way(self) -> Way:
        if self._way is None:
            self._way = self._open()
        return self._way

    def __str__(self) -> str:
        return f"{self.model} ({self.provider})"


class Fallback:
    """The first link is the chosen model. A turn starts with it unless it is in cooldown, and stays
    with the model that took over. A switch is announced in each turn, the return once. If all fail,
    the first error of the reply is raised."""

    def __init__(self, chain: Sequence[Link], cooldowns: Cooldowns) -> None:
        self._chain = tuple(chain)
        self._cooldowns = cooldowns
        self._place = 0
        self._announced = ""
        self._switched = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        if _starts_turn(prompt):
            self._place, self._announced = 0, ""
        tries = _Tries()
        for place, provider in self._candidates(prompt, tries):
            link = self._chain[place]
            for notice in self._switch_notice(link, place, tries):
                yield notice
            for restarted in tries.voided():
                yield restarted
            error: ProviderError | None = None
            try:
                async with aclosing(provider.reply(prompt)) as stream:
                    async for item in stream:
                        if isinstance(item, Reply):
                            if tries.more_to_come and is_excuse(item):
                                error = _empty_reply_error(link, item)
                                break
                            for notice in self._settle(place):
                                yield notice
                        elif not isinstance(item, Notice):
                            tries.streamed = True
                        yield item
            except ProviderError as raised:
                error = raised
            if error is None:
                return
            tries.failed(link, error)
            self._cooldowns.note(link.who, error)
            if error.reason not in PASSED_ON:
                raise error
        raise tries.verdict()

    def _candidates(self, prompt: Prompt, tries: _Tries) -> Iterator[tuple[int, Provider]]:
        """Yields whom to ask, in order: models without cooldown whose window fits, else all that
        fit. Only the last one retries fully; if it fails too, the first is asked again with full
        retries where that can help."""
        places = self._fitting(prompt, tries)
        available = [place for place in places if not self._cooldowns.left(self._chain[place].who)]
        chosen = available or places
        for number, place in enumerate(chosen):
            way = self._chain[place].way
            tries.more_to_come = number + 1 < len(chosen)
            yield place, way.eager if tries.more_to_come else way.patient
        if len(chosen) > 1 and tries.first_may_recover:
            yield chosen[0], self._chain[chosen[0]].way.patient

    def _fitting(self, prompt: Prompt, tries: _Tries) -> list[int]:
        places = list(range(self._place, len(self._chain)))
        smallest = min((self._chain[place].window or 1 << 60 for place in places[1:]), default=0)
        first = self._chain[places[0]].window
        if not smallest or (first and smallest >= first):
            return places
        tokens = guessed_tokens(prompt)
        for place in places[1:]:
            window = self._chain[place].window
            if window and tokens > window:
                tries.too_small(self._chain[place], tokens)
                places.remove(place)
        return places

    def _settle(self, place: int) -> Iterator[Notice]:
        """Records that this model answered and keeps it for the rest of the turn."""
        if self._switched and place == 0:
            yield Notice(text=f"{self._chain[0]} is available again.", kind="warn")
        self._place, self._switched = place, place > 0
        self._cooldowns.end(self._chain[place].who)

    def _switch_notice(self, link: Link, place: int, tries: _Tries) -> Iterator[Notice]:
        if place > 0 and self._announced != link.who:
            self._announced = link.who
            yield Notice(text=f"{self._why(tries)}; continuing with {link}.", kind="warn")

    def _why(self, tries: _Tries) -> str:
        if tries.error is not None and tries.by is not None:
            return f"{tries.by} {CAUSE[tries.error.reason]}"
        chosen = self._chain[0]
        seconds, reason = self._cooldowns.left(chosen.who), self._cooldowns.reason(chosen.who)
        return f"{chosen} {CAUSE[reason]} and is paused for {max(1, round(seconds))} s"


class _Tries:
    """The attempts for one reply."""

    def __init__(self) -> None:
        self.error: ProviderError | None = None
        self.by: Link | None = None
        self.streamed = False
        self.more_to_come = False
        self._first: ProviderError | None = None
        self._small: ProviderError | None = None

    def failed(self, link: Link, error: ProviderError) -> None:
        self.error, self.by = error, link
        self._first = self._first or error

    def too_small(self, link: Link, tokens: int) -> None:
        if self._small is None or (self._small.limit or 0) < link.window:
            self._small = ProviderError(
                f"{link} has a window of {link.window} tokens, but the conversation"
                f" has about {tokens}. Use /compress, or start over with /new.",
                reason="context_overflow",
                limit=link.window,
            )

    def voided(self) -> Iterator[Restarted]:
        if self.streamed:
            self.streamed = False
            yield Restarted()

    @property
    def first_may_recover(self) -> bool:
        return self._first is not None and self._first.retryable

    def verdict(self) -> ProviderError:
        """Reports a window that is too small first: a shorter conversation could go on there."""
        verdict = self._small or self._first
        assert verdict is not None
        return verdict


def is_excuse(reply: Reply) -> bool:
    """True if the reply only says that there is none."""
    return not reply.message.calls and reply.message.text.startswith(EMPTY)


def _starts_turn(prompt: Prompt) -> bool:
    return bool(prompt.messages) and isinstance(prompt.messages[-1], UserMessage)


def _empty_reply_error(link: Link, reply: Reply) -> ProviderError:
    why = reply.message.text.removeprefix(EMPTY).strip()
    return ProviderError(f"{link} sent no reply. {why}", reason="unknown", status=200)
