"""The interface of a running plugin, in either isolation mode."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.plugins.serving import PluginCaller

CallKind = Literal["tool", "hook", "command", "cli", "image", "service", "ping"]


class PluginFault(ToolError):
    """A plugin call failed: crash, timeout or refusal. Shown to the model."""


class RunningPlugin(Protocol):
    """A plugin that starts on its first call."""

    @property
    def protection(self) -> str:
        """Describes the sandbox in a few words."""
        ...

    async def load(self) -> Any:
        """Returns its registrations; PluginFault."""
        ...

    async def call(
        self, kind: CallKind, name: str, given: Any, *, seconds: float, caller: PluginCaller
    ) -> Any:
        """Returns its answer as JSON; PluginFault. 0 seconds means no limit."""
        ...

    async def close(self) -> None:
        """Stops it; PluginFault when its own clean-up failed."""
        ...


def call_facts(caller: PluginCaller) -> JsonObject:
    """Returns the keyword arguments about a call."""
    return {"session_id": caller.session_id, "call_id": caller.call_id}
