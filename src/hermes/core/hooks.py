"""Who else has a say in a turn: what hooks may change, and nothing more."""

from __future__ import annotations

from typing import Literal, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import ToolCall, ToolResult

# A call was made, did not get as far as that, or was forbidden by the policy, a person or a hook.
Fate = Literal["made", "refused", "blocked"]


class Verdict(Value):
    """What hooks say of a call. `block` is what the model reads in place of a result, `ask` why a
    person is to be asked first, `arguments` are taken instead of the model's."""

    block: str | None = None
    ask: str | None = None
    arguments: JsonObject | None = None


class TurnHooks(Protocol):
    """The hooks of one session. None of these raises; each gives up after its own time."""

    @property
    def holds_text(self) -> bool:
        """Nobody is to see the words of a reply before the hooks have."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """The strangers who have had a say up to now, such as plugins."""
        ...

    async def turn_begins(self) -> str:
        """What the model is to read beside the person's words during this turn."""
        ...

    async def call_comes(self, call: ToolCall) -> Verdict | None: ...

    async def call_went(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: Fate
    ) -> str | None:
        """What the model is to read in place of the text of a call that was made; what is said of
        any other stays as it is."""
        ...

    async def last_words(self, text: str) -> str | None:
        """What the person is to read in place of the turn's answer."""
        ...
