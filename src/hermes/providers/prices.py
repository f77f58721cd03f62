"""Token prices and the cost of a call."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from hermes.codec.values import Value, replace
from hermes.core.messages import Usage

PriceSource = Literal["official_docs_snapshot", "provider_models_api", "user_override", "none"]
Dollars = Annotated[float, Meta(ge=0)]
_MILLION = 1_000_000


class Rates(Value):
    """US dollars per million tokens. Cache rates default to the input rate."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost_of(self, usage: Usage) -> float:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        spent = usage.input * self.input + usage.output * self.output
        return (spent + usage.cache_read * read + usage.cache_write * write) / _MILLION


R = TypeVar("R", bound=Rates)


class ModelPrice(Rates):
    """The rates of a model. Prompts of more than `above` tokens cost `beyond` entirely. `version`
    is the date of the price."""

    version: str = ""
    above: int = 0
    beyond: Rates | None = None

    def scaled_by(self, factor: float) -> ModelPrice:
        """All rates multiplied by a factor."""
        beyond = _scale(self.beyond, factor) if self.beyond is not None else None
        return replace(_scale(self, factor), beyond=beyond)

    def cost(self, usage: Usage) -> float:
        """Dollars for one call. Reasoning counts as output."""
        if self.beyond is not None and usage.prompt > self.above:
            return self.beyond.cost_of(usage)
        return self.cost_of(usage)


def _scale(rates: R, factor: float) -> R:
    read = None if rates.cache_read is None else rates.cache_read * factor
    write = None if rates.cache_write is None else rates.cache_write * factor
    input, output = rates.input * factor, rates.output * factor
    return replace(rates, input=input, output=output, cache_read=read, cache_write=write)


FREE = ModelPrice(input=0, output=0)


class PriceSheet(Value):
    """The published prices of one maker. `vendors` charge them; `slugs` are the maker's names at
    aggregators that pass them on."""

    version: str
    vendors: tuple[str, ...]
    models: dict[str, ModelPrice]
    slugs: tuple[str, ...] = ()
