"""What hooks may change in a turn."""

from __future__ import annotations

from typing import Literal, Protocol

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import ToolCall, ToolResult

# A call ran, was refused before it ran, or was blocked by the policy, a person or a hook.
CallOutcome = Literal["made", "refused", "blocked"]


class HookVerdict(Value):
    """A hook's decision on a call. `block` is the text that the model gets as the result, `ask` the
    reason to ask a person first. `arguments` replace the model's."""

    block: str | None = None
    ask: str | None = None
    arguments: JsonObject | None = None


class TurnHooks(Protocol):
    """The hooks of one session. None of these methods raises; each has its own time limit."""

    @property
    def holds_text(self) -> bool:
        """Whether the text of a reply stays hidden until the hooks have seen it."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """Plugins and other third parties whose hooks have run so far."""
        ...

    async def before_turn(self) -> str:
        """Text to add to the user message during this turn."""
        ...

    async def before_tool(self, call: ToolCall) -> HookVerdict | None: ...

    async def after_tool(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: CallOutcome
    ) -> str | None:
        """Text that replaces the result of a call that ran; ignored for other calls."""
        ...

    async def before_final_answer(self, text: str) -> str | None:
        """Text that replaces the final answer of the turn."""
        ...
