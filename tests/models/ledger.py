"""A meter for tests of the way to a model, without a journal."""

from __future__ import annotations

from hermes.core.events import CallSettled, ModelCalled
from hermes.core.messages import Usage


class Ledger:
    """A meter that grants everything and remembers what for."""

    def __init__(self) -> None:
        self.causes: list[str] = []
        self.settled: list[Usage] = []

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        assert call.reserved is not None
        self.causes.append(call.cause)
        return call.reserved

    def settle(self, settled: CallSettled) -> None:
        self.settled.append(settled.usage)
