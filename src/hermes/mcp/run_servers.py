"""The configured MCP servers of a run, and the servers of a single session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.errors import NotFound
from hermes.core.prompt import ToolSpec
from hermes.core.session_deps import SessionDeps, Toolbox
from hermes.core.tools import Tool
from hermes.tools.discovery import ToolDirectory

if TYPE_CHECKING:
    from hermes.config.extension_settings import McpServerSettings
    from hermes.config.load import Config
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.mcp.pool import ServerPool
    from hermes.mcp.server import McpServer
    from hermes.tools.toolbox import SessionTools

# Limits the wait for servers that were never connected.
DISCOVERY_SECONDS = 15.0
# How often the settings file is checked for changes.
POLL_SECONDS = 5.0
UNCHANGED = "MCP servers: no changes."


class McpServers:
    """The MCP servers of a run. Nothing is loaded if no server is configured; the first call loads
    the protocol library."""

    def __init__(self, run: RunContext, tools: SessionTools) -> None:
        self._run = run
        self._tools = tools
        self._servers: ServerPool | None = None
        self._offering = asyncio.Lock()
        self._offered = False
        self._names: tuple[str, ...] = ()
        self._last_stamp: tuple[int, int] | None = None
        # Whether sessions get the tools of configured servers.
        self.enabled = True

    @property
    def pool(self) -> ServerPool:
        if self._servers is None:
            self._servers = configured_pool(self._run, self._update_tools)
        return self._servers

    async def offer_tools(self) -> None:
        """Offer the tools of all servers to sessions. Known servers use their cached tool list;
        only new servers are connected first."""
        if self._offered or not self.enabled or not self._run.settings.mcp_servers:
            return
        async with self._offering:
            if self._offered:
                return
            self._offered = True
            if (new := self.pool.uncached_servers()) and not self._run.offline:
                faults = await self.pool.discover(new, seconds=DISCOVERY_SECONDS)
                self._run.notices += faults.values()
            self._update_tools()

    async def reload(self, *, requery: bool = False) -> str:
        """Apply the current settings; return a message. Unreadable settings change nothing. With
        `requery`, connect to all servers again and read their tools."""
        from hermes.config.diagnostics import UNREADABLE
        from hermes.config.load import load

        config = await asyncio.to_thread(load, self._run.home, env=self._run.env)
        if broken := next((each for each in config.diagnostics if each.kind == UNREADABLE), None):
            return f"{broken.text}; the MCP servers stay unchanged."
        servers, faults_found = usable_servers(config)
        async with self._offering:
            added, changed, removed = await self.pool.replace(servers)
            self._offered = True
            new = [name for name in (*added, *changed) if self.pool.cached_listing(name) is None]
            if requery:
                await self.pool.disconnect()
                new = list(self.pool.servers)
            before = set(self._names)
            faults = await self.pool.discover(new, seconds=DISCOVERY_SECONDS)
            self._update_tools()
        tools = _tool_changes(before, set(self._names)) if requery else ""
        counts = f"{len(added)} added, {len(changed)} changed, {len(removed)} removed"
        servers_line = f"MCP servers: {counts}." if added or changed or removed else ""
        lines = filter(None, (servers_line, tools, *faults_found, *faults.values()))
        return "\n".join(lines) or UNCHANGED

    async def follow(self, session: Session) -> None:
        """Watch the settings while the session is open, and report changes in it."""
        if not self.enabled:
            return
        if self._last_stamp is None:
            self._last_stamp = self._stamp()
        while True:
            await self._run.world.clock.sleep(POLL_SECONDS)
            if (stamp := self._stamp()) == self._last_stamp:
                continue
            self._last_stamp = stamp
            message = await self.reload()
            if message == UNCHANGED:
                continue
            # The tool list of a session is fixed: without `tool_search` it cannot find new tools.
            opened = session.transcript.opened
            if self._names and opened is not None and "tool_search" not in opened.tools:
                message += "\nTheir tools are available in new sessions."
            session.tell(message)

    def _stamp(self) -> tuple[int, int]:
        try:
            info = self._run.home.config.stat()
        except OSError:
            return 0, 0
        return info.st_mtime_ns, info.st_size

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.close()

    def _update_tools(self) -> None:
        from hermes.tools.catalogue import CatalogueEntry

        if self._offered:
            entries = [CatalogueEntry(spec, tool) for spec, tool in self.pool.list_tools()]
            before, self._names = self._names, tuple(entry.spec.name for entry in entries)
            self._tools.add(entries, instead_of=before)


def _tool_changes(before: set[str], after: set[str]) -> str:
    """Name the tools that a server has gained or lost."""
    changes = [
        f"{len(names)} {what} ({', '.join(sorted(names))})"
        for what, names in (("added", after - before), ("removed", before - after))
        if names
    ]
    return f"MCP tools: {', '.join(changes)}." if changes else ""


def configured_pool(
    run: RunContext,
    changed: Callable[[], None] = lambda: None,
    *,
    extra: tuple[McpServer, ...] = (),
) -> ServerPool:
    """Return a pool of the configured servers; `extra` servers replace those of the same name."""
    servers, faults = usable_servers(run.config)
    run.notices += faults
    others = {server.name for server in extra}
    servers = [*(server for server in servers if server.name not in others), *extra]
    return create_pool(run, servers, changed)


def create_pool(
    run: RunContext,
    servers: Sequence[McpServer],
    changed: Callable[[], None] = lambda: None,
    *,
    folder: str = "",
) -> ServerPool:
    """Return a pool of these servers. They start in `folder`, by default the sessions' folder."""
    from hermes.mcp.listing import scan_description
    from hermes.mcp.pool import ServerEnvironment, ServerPool

    home = run.home
    environment = ServerEnvironment(
        cache=home.ensure_folder(home.cache / "mcp"),
        logs=home.logs / "mcp",
        tokens=home.root / "mcp-tokens",
        variables=dict(run.env),
        person=run.user_home,
        folder=folder or str(Path(run.settings.terminal.cwd).expanduser().resolve()),
    )
    return ServerPool(servers, environment, run.world, scan=scan_description, changed=changed)


def usable_servers(config: Config) -> tuple[list[McpServer], list[str]]:
    """Return the usable servers, and the faults of the others."""
    servers: list[McpServer] = []
    faults: list[str] = []
    off = config.settings.agent.disabled_toolsets
    for name, settings in sorted(config.settings.mcp_servers.items()):
        if not settings.enabled or f"mcp-{name}" in off:
            continue
        server = server_from_settings(name, settings)
        if fault := server.fault():
            faults.append(fault)
        else:
            servers.append(server)
    return servers, faults


def server_from_settings(name: str, settings: McpServerSettings) -> McpServer:
    from msgspec.structs import asdict

    from hermes.mcp.server import McpServer

    return McpServer(name=name, **asdict(settings))


def find_server(run: RunContext, name: str) -> McpServer:
    """Find a server; raise NotFound with the known names."""
    known = run.settings.mcp_servers
    if name not in known:
        raise NotFound(
            f"No MCP server is named {name!r}; `hermes mcp list` shows all.",
            near=tuple(known),
        )
    return server_from_settings(name, known[name])


DIRECTORY = "hermes.tools.discovery:ToolDirectory"


class SessionServers:
    """MCP servers of one session; no other session can use their tools. The owner of the session
    closes them."""

    def __init__(
        self, run: RunContext, servers: Mapping[str, McpServerSettings], folder: str
    ) -> None:
        described = [server_from_settings(name, settings) for name, settings in servers.items()]
        self._servers = create_pool(run, described, folder=folder)

    async def connect(self) -> tuple[str, ...]:
        """Connect to unknown servers concurrently; return the faults."""
        faults = await self._servers.discover(
            self._servers.uncached_servers(), seconds=DISCOVERY_SECONDS
        )
        return tuple(faults.values())

    def join(self, deps: SessionDeps) -> None:
        """Add the tools to the session."""
        list_tools = self._servers.list_tools

        def add_tools(directory: object) -> ToolDirectory:
            assert isinstance(directory, ToolDirectory)
            known = directory.specs
            return ToolDirectory(lambda: (*known(), *(spec for spec, _ in list_tools())))

        deps.toolbox = _ToolboxWithServers(deps.toolbox, list_tools)
        deps.services = deps.services.replace(DIRECTORY, add_tools)

    async def close(self) -> None:
        await self._servers.close()


class _ToolboxWithServers:
    """A toolbox with the tools of session servers. Requests do not list them; `tool_search` finds
    them."""

    def __init__(
        self, inner: Toolbox, list_tools: Callable[[], list[tuple[ToolSpec, Tool]]]
    ) -> None:
        self._inner = inner
        self._list_tools = list_tools

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._inner.specs

    def load(self, name: str) -> Tool | None:
        own = (tool for spec, tool in self._list_tools() if spec.name == name)
        return self._inner.load(name) or next(own, None)
