"""What authors of plugins import: the class for plugins of one file, and the kind of `ctx`."""

from __future__ import annotations

from typing import Any

from hermes.plugins.inside.context import Context

# What `register(ctx)` is given.
PluginContext = Context


class Plugin:
    """A plugin that is one tool. Derive from it in a file of `plugins/`, give it a `name` and a
    `description`, and it is found by them."""

    name = ""
    description = ""

    def get_schema(self) -> dict[str, Any]:
        """The JSON Schema of what `execute` takes."""
        return {"type": "object", "properties": {}}

    async def execute(self, parameters: dict[str, Any]) -> Any:
        raise NotImplementedError
