"""A ToolContext for calling one tool without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from hermes.codec.values import JsonObject
from hermes.core.events import inner_id
from hermes.core.messages import ToolCall, ToolResult
from hermes.core.planning import refuse_call
from hermes.core.ports import Fetcher, Workspace
from hermes.core.tools import Tool, ToolOutput, ToolSettings

ServiceT = TypeVar("ServiceT")


class ScriptedContext:
    """A `ToolContext` that answers questions with `answers`, in order, then with None; `asked` and
    `shown` record what the tool asked and showed. Pass a workspace to a tool that needs files or
    commands, a fetcher to one that needs the web, and `tools` to one that calls other tools."""

    def __init__(
        self,
        *answers: str,
        workspace: Workspace | None = None,
        web: Fetcher | None = None,
        settings: ToolSettings | None = None,
        details: Mapping[str, JsonObject] | None = None,
        call_id: str = "call_1",
        tools: Iterable[Tool] = (),
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._answers = list(answers)
        self._workspace = workspace
        self._web = web
        self._details = dict(details or {})
        self._kept: dict[type[Any], Any] = {}
        self.settings = settings or ToolSettings()
        self.call_id = call_id
        self.stop = asyncio.Event()
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.shown: list[str] = []

    @property
    def workspace(self) -> Workspace:
        assert self._workspace is not None, "this tool needs ScriptedContext(workspace=…)"
        return self._workspace

    @property
    def web(self) -> Fetcher:
        assert self._web is not None, "this tool needs ScriptedContext(web=…)"
        return self._web

    def progress(self, text: str, details: JsonObject | None = None) -> None:
        self.shown.append(text)

    def known_result(self, key: str) -> ToolResult | None:
        return None

    def latest(self, tool: str) -> JsonObject | None:
        return self._details.get(tool)

    def service(self, kind: type[ServiceT]) -> ServiceT:
        if kind not in self._kept:
            self._kept[kind] = kind()
        found: ServiceT = self._kept[kind]
        return found

    async def ask(self, question: str, choices: tuple[str, ...]) -> str | None:
        self.asked.append((question, choices))
        return self._answers.pop(0) if self._answers else None

    async def call_tool(
        self, tool: str | Tool, arguments: JsonObject, *, key: str, origin: str = ""
    ) -> ToolResult:
        """Call one of `tools`, or a private tool."""
        id = inner_id(self.call_id, key)
        found = tool if isinstance(tool, Tool) else self._tools.get(tool)
        if found is None:
            call = ToolCall(id=id, name=str(tool), arguments=arguments)
            return refuse_call(call, f"There is no tool named {tool!r}.")
        output = await found(self, found.parameters.decode(arguments))
        return ToolResult(
            call_id=id,
            name=found.name,
            parts=output.parts,
            failed=output.failed,
            origin=output.origin,
            details=output.details,
        )

    async def call(self, tool: Tool, /, **arguments: Any) -> ToolOutput:
        """Call a tool as a model does: the arguments are decoded by its signature, and the details
        of a successful result are available to its next call."""
        output = await tool(self, tool.parameters.decode(arguments))
        if not output.failed:
            self._details[tool.name] = output.details
        return output
