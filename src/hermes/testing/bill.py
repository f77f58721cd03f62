"""The cost of scripted replies, as the server counts it."""

from __future__ import annotations

from decimal import Decimal

from hermes.codec.values import Value
from hermes.core.messages import Usage
from hermes.testing.steps import Step


class Prices(Value, forbid_unknown_fields=True):
    """US dollars per million tokens, which equals millionths per token. With `told`, replies state
    their cost, as some vendors do."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    told: bool = True

    def micros(self, usage: Usage) -> Decimal:
        """Millionths of a dollar, exactly."""
        return (
            _exact(self.input) * usage.input
            + _exact(self.output) * usage.output
            + _exact(self.cache_read) * usage.cache_read
            + _exact(self.cache_write) * usage.cache_write
        )


class Charge(Value):
    """One line of the bill; `n` is the number of the request."""

    n: int
    model: str
    usage: Usage
    micros: Decimal


class Bill:
    """A reply is charged in full when it begins, even if the client disconnects. Error responses
    are free."""

    def __init__(self, prices: Prices | None) -> None:
        self.prices = prices
        self.charges: list[Charge] = []

    @property
    def micros(self) -> Decimal:
        return sum((charge.micros for charge in self.charges), Decimal(0))

    @property
    def dollars(self) -> float:
        return float(self.micros / 1_000_000)

    def charge(self, n: int, model: str, usage: Usage) -> float | None:
        """The price in dollars; None if the reply does not state it."""
        if self.prices is None:
            return None
        micros = self.prices.micros(usage)
        self.charges.append(Charge(n=n, model=model, usage=usage, micros=micros))
        return float(micros / 1_000_000) if self.prices.told else None


def _exact(price: float) -> Decimal:
    # Via the shortest decimal form: 0.1 means a tenth, not the nearest binary fraction.
    return Decimal(str(price))


def estimated_tokens(text: str | bytes) -> int:
    """Four characters or bytes per token: crude but deterministic."""
    return (len(text) + 3) // 4


def estimated_usage(input_tokens: int, step: Step) -> Usage:
    """The usage of a step that does not state it; at least one output token."""
    reasoning = estimated_tokens(step.reasoning)
    arguments = sum(estimated_tokens(call.raw or str(call.arguments)) for call in step.calls)
    output = max(1, estimated_tokens(step.text) + reasoning + arguments)
    return Usage(input=input_tokens, output=output, reasoning=reasoning, requests=1)
