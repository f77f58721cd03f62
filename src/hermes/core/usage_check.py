"""Checks the usage that a provider reports against the text that was sent and received."""

from __future__ import annotations

import math
from collections.abc import Callable

from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import replace
from hermes.core.messages import AssistantMessage, Usage
from hermes.core.prompt_bound import count_characters

# The price of some usage in dollars, None when unknown.
Cost = Callable[[Usage], float | None]

# Prose and code have three to five characters per token in every known tokenizer, so a report that
# implies more is wrong.
_CHARACTERS_PER_TOKEN = 6
# Characters of an answer that need not be counted: short answers vary most.
_UNCOUNTED = 240
# A provider may count text that Hermes does not see, such as pages that it searched, and prices
# change. A report is absurd only far beyond the worst case.
_ABSURD_FACTOR = 100
# For models without a known price.
_ABSURD_DOLLARS = 1_000.0


class UsageCheck:
    """Finds reports that cannot be right. Models that cost nothing are not checked: their servers
    often count only the part of a prompt that was not cached."""

    def __init__(self, cost: Cost) -> None:
        self._cost = cost

    def find_doubt(
        self, usage: Usage, reply: AssistantMessage, prompt_characters: int, granted: Usage
    ) -> str:
        """Describe what cannot be right about a report; "" if nothing is wrong. `granted` is the
        worst case of the call."""
        if not _is_amount(usage.cost):
            return f"a cost of {usage.cost:g} dollars"
        if usage.estimated or granted.cost == 0:
            return ""
        sent, received = prompt_characters, reply_characters(reply)
        least = Usage(
            cache_read=sent // _CHARACTERS_PER_TOKEN,
            output=max(0, received - _UNCOUNTED) // _CHARACTERS_PER_TOKEN,
        )
        return (
            _count_doubt("input", usage.prompt, least.prompt, granted.input, sent)
            or _count_doubt("output", usage.output, least.output, granted.output, received)
            or self._cost_doubt(usage, least, granted)
        )

    def estimate(self, reply: AssistantMessage, prompt_characters: int) -> Usage:
        """Estimate the usage of a call without a usable report."""
        usage = Usage(
            input=tokens_of_size(prompt_characters),
            output=tokens_of_size(reply_characters(reply)),
            requests=1,
            estimated=True,
        )
        return replace(usage, cost=self._cost(usage))

    def _cost_doubt(self, usage: Usage, least: Usage, granted: Usage) -> str:
        if usage.cost is None:
            return ""
        floor = self._cost(least)
        ceiling = _ABSURD_DOLLARS if granted.cost is None else granted.cost * _ABSURD_FACTOR
        if (floor is not None and usage.cost < floor) or usage.cost > ceiling:
            return f"a cost of {usage.cost:g} dollars for {usage.prompt + usage.output} tokens"
        return ""


def _count_doubt(kind: str, reported: int, least: int, most: int, characters: int) -> str:
    if max(least, min(1, characters)) <= reported <= most * _ABSURD_FACTOR:
        return ""
    return f"{reported} {kind} tokens for {characters} characters"


def reply_characters(reply: AssistantMessage) -> int:
    """Count the characters of a reply, with its reasoning."""
    return count_characters(reply) + len(reply.reasoning)


def _is_amount(cost: float | None) -> bool:
    return cost is None or (math.isfinite(cost) and cost >= 0)
