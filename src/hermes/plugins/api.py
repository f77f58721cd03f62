"""The public API for plugin authors."""

from __future__ import annotations

from typing import Any

from hermes.plugins.inside.context import Context

# The type of `ctx` in `register(ctx)`.
PluginContext = Context


class Plugin:
    """A plugin with one tool. Subclass it in a file of `plugins/` and set `name` and
    `description`."""

    name = ""
    description = ""

    def get_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the parameters of `execute`."""
        return {"type": "object", "properties": {}}

    async def execute(self, parameters: dict[str, Any]) -> Any:
        raise NotImplementedError
