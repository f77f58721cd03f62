"""Calls a plugin's provider by method, with a timeout, on behalf of a session."""

from __future__ import annotations

from typing import Any

from hermes.core.tools import ToolContext
from hermes.plugins.plugins import PluginRegistry, PluginState
from hermes.plugins.running import PluginFault
from hermes.plugins.serving import PluginCaller
from hermes.plugins.surface import ServiceOffer
from hermes.plugins.tools import OPEN, PREFIX


class Service:
    """`label` names it in effects, `origin` marks its text."""

    def __init__(self, plugins: PluginRegistry, state: PluginState, offer: ServiceOffer) -> None:
        self._plugins = plugins
        self._key = state.found.key
        self.offer = offer
        self.name = offer.name
        self.sealed = plugins.is_sealed(state.found)
        self.origin = "workspace" if state.found.trusted else PREFIX + state.found.name
        self.label = PREFIX + state.found.name + ("" if self.sealed else OPEN)
        self.data = plugins.data_dir(state.found)

    def has(self, method: str) -> bool:
        return method in self.offer.methods

    async def ask(
        self,
        method: str,
        *given: Any,
        seconds: float,
        session_id: str = "",
        ctx: ToolContext | None = None,
        **named: Any,
    ) -> Any:
        """Returns its answer as JSON; PluginFault. 0 seconds means no limit."""
        if not self.has(method):
            raise PluginFault(f"{self.name} has no method {method}.")
        running = await self._plugins.ready(self._key)
        return await running.call(
            "service",
            f"{self.offer.kind}:{self.name}:{method}",
            {"positional": list(given), "named": named},
            seconds=seconds,
            caller=PluginCaller(session_id, ctx),
        )
