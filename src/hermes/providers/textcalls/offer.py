"""The offered tools, and validation of calls against them."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.core.prompt import ToolSpec
from hermes.providers.textcalls.schema import SchemaMismatch, fit_to_schema

_PREFIXES = ("functions.", "function.", "tools.", "tool.", "default_api.")


class OfferedTools:
    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def knows(self, name: str) -> bool:
        return name in self._tools

    def may_start(self, text: str) -> bool:
        """True if a tool name may start with this text."""
        return any(name.startswith(text) for name in self._tools)

    def strip_namespace(self, name: str) -> str:
        """The name without a namespace prefix that models add."""
        name = name.strip()
        if name in self._tools:
            return name
        for prefix in _PREFIXES:
            if name.startswith(prefix):
                return name[len(prefix) :]
        return name

    def arguments(self, name: str, given: JsonObject, *, typed: bool) -> JsonObject:
        """The arguments as the schema requires them; raises Misfit. Without `typed`, text values
        are converted to the types of the schema."""
        tool = self._tools.get(name)
        if tool is None:
            raise SchemaMismatch("no such tool")
        found = fit_to_schema(tool.parameters, given, text=not typed)
        if not isinstance(found, dict):
            raise SchemaMismatch("arguments are not an object")
        return found

    def parameters(self, name: str) -> tuple[str, ...]:
        """The names of the tool's parameters, in schema order."""
        properties = self._tools[name].parameters.get("properties")
        return tuple(properties) if isinstance(properties, dict) else ()

    def sole_parameter(self, name: str) -> str:
        """The only required parameter of the tool, "" if there are none or several."""
        required = self._tools[name].parameters.get("required")
        needed = list(required) if isinstance(required, list) else []
        if len(needed) == 1:
            return str(needed[0])
        known = self.parameters(name)
        return known[0] if not needed and len(known) == 1 else ""
