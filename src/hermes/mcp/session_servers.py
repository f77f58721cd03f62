"""Servers that a surface brings along for one session, such as those of an editor's project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.core.turn import SessionDeps, Toolbox
from hermes.mcp.run_servers import PATIENCE_SECONDS, server_of, servers_for
from hermes.tools.discovery import ToolDirectory

if TYPE_CHECKING:
    from hermes.config.extension_settings import McpServerSettings
    from hermes.config.run_context import RunContext


DIRECTORY = "hermes.tools.discovery:ToolDirectory"


class SessionServers:
    """Their tools are those of this session alone; no other can find or use them. Whoever has
    opened the session closes them with it."""

    def __init__(
        self, run: RunContext, servers: Mapping[str, McpServerSettings], folder: str
    ) -> None:
        described = [server_of(name, own) for name, own in servers.items()]
        self._servers = servers_for(run, described, folder=folder)

    async def connect(self) -> tuple[str, ...]:
        """Wait for those that were never seen before, side by side; what went wrong."""
        faults = await self._servers.discover(
            self._servers.uncached_servers(), seconds=PATIENCE_SECONDS
        )
        return tuple(faults.values())

    def join(self, parts: SessionDeps) -> None:
        """Let the session find and use their tools."""
        parts.toolbox = _MoreTools(parts.toolbox, self)
        parts.services = parts.services.replace(DIRECTORY, self._add_tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec, _ in self._servers.list_tools())

    def load(self, name: str) -> Tool | None:
        return next((tool for spec, tool in self._servers.list_tools() if spec.name == name), None)

    async def close(self) -> None:
        await self._servers.close()

    def _add_tools(self, directory: object) -> ToolDirectory:
        assert isinstance(directory, ToolDirectory)
        known = directory.specs
        return ToolDirectory(lambda: (*known(), *self.specs()))


class _MoreTools:
    """A toolbox with the tools of guests, which no request names: they are found by search."""

    def __init__(self, inner: Toolbox, guests: SessionServers) -> None:
        self._inner = inner
        self._guests = guests

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs

    def load(self, name: str) -> Tool | None:
        return self._inner.load(name) or self._guests.load(name)
