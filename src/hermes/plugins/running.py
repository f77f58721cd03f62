"""A plugin that runs, whichever way: what the rest of the room needs of it."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.plugins.serving import Caller

CallKind = Literal["tool", "hook", "command", "cli", "image", "service", "ping"]


class PluginFault(ToolError):
    """A plugin could not do what was asked of it: crashed, too slow, refused. For the model."""


class Running(Protocol):
    """Starts when it is first asked something."""

    @property
    def protection(self) -> str:
        """What stands between it and the machine, in a few words."""
        ...

    async def load(self) -> Any:
        """What it has registered, as it tells it; PluginFault."""
        ...

    async def call(
        self, kind: CallKind, name: str, given: Any, *, seconds: float, caller: Caller
    ) -> Any:
        """Its answer, as plain JSON; PluginFault. 0 seconds is no limit."""
        ...

    async def close(self) -> None:
        """Stops it; PluginFault when its own clean-up failed."""
        ...


def told(caller: Caller) -> JsonObject:
    """What a handler gets to know of the call, by keyword."""
    return {"session_id": caller.session_id, "call_id": caller.call_id}
