"""Shows a plan while it runs."""

from __future__ import annotations

import asyncio

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.tools import ToolContext
from hermes.plans.model import PlanState
from hermes.plans.rendering import render_state

# Changes that follow each other faster are shown together.
SHOW_SECONDS = 0.05


class PlanProgress:
    """Shows the newest state of a plan, a moment after it changed."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._newest: PlanState | None = None
        self._shown: JsonValue = None
        self._timer: asyncio.TimerHandle | None = None

    def update(self, state: PlanState) -> None:
        self._newest = state
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SHOW_SECONDS, self._show)

    def end(self) -> None:
        """Show the last state now."""
        if self._timer is not None:
            self._timer.cancel()
            self._show()

    def _show(self) -> None:
        self._timer, state = None, self._newest
        if state is None or (todos := state.todos) == self._shown:
            return
        self._shown = todos
        details: JsonObject = {"todos": todos, "plan_id": state.plan.plan_id}
        self._ctx.progress(f"{render_state(state)}\n", details)
