"""A ToolContext for calling one tool without a session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar

from hermes.codec.values import JsonObject
from hermes.core.ports import Fetcher, Workspace
from hermes.core.tools import Tool, ToolOutput, ToolSettings

ServiceT = TypeVar("ServiceT")


class ScriptedContext:
    """A `ToolContext` that answers questions with `answers`, in order, then with None; `asked` and
    `shown` record what the tool asked and showed. Pass a workspace to a tool that needs files or
    commands, a fetcher to one that needs the web."""

    def __init__(
        self,
        *answers: str,
        workspace: Workspace | None = None,
        web: Fetcher | None = None,
        settings: ToolSettings | None = None,
        details: Mapping[str, JsonObject] | None = None,
        call_id: str = "call_1",
    ) -> None:
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

    def progress(self, text: str) -> None:
        self.shown.append(text)

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

    async def call(self, tool: Tool, /, **arguments: Any) -> ToolOutput:
        """Call a tool as a model does: the arguments are decoded by its signature, and the details
        of a successful result are available to its next call."""
        output = await tool(self, tool.parameters.decode(arguments))
        if not output.failed:
            self._details[tool.name] = output.details
        return output
