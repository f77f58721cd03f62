"""The MCP servers of a run, and servers that one session brings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.errors import NotFound
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.core.turn import SessionDeps, Toolbox
from hermes.tools.discovery import ToolDirectory

if TYPE_CHECKING:
    from hermes.config.extension_settings import McpServerSettings
    from hermes.config.load import Config
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.mcp.pool import ServerPool
    from hermes.mcp.server import McpServer
    from hermes.tools.toolbox import SessionTools

# Longest wait for servers that were never seen before.
PATIENCE_SECONDS = 15.0
# How often the settings are looked at.
LOOK_SECONDS = 5.0
UNCHANGED = "MCP servers: as before."


class McpServers:
    """Nothing is loaded where the settings name no server, and the protocol's library by the first
    call only."""

    def __init__(self, run: RunContext, tools: SessionTools) -> None:
        self._run = run
        self._tools = tools
        self._servers: ServerPool | None = None
        self._offering = asyncio.Lock()
        self._offered = False
        self._names: tuple[str, ...] = ()
        self._seen: tuple[int, int] | None = None
        # Whether sessions get the tools of servers that the settings name.
        self.enabled = True

    @property
    def servers(self) -> ServerPool:
        if self._servers is None:
            self._servers = servers_of(self._run, self._offer_again)
        return self._servers

    async def offer_tools(self) -> None:
        """Give the tools of all servers to the sessions of this run. Servers that were seen before
        are known; only new ones are waited for."""
        if self._offered or not self.enabled or not self._run.settings.mcp_servers:
            return
        async with self._offering:
            if self._offered:
                return
            self._offered = True
            if (new := self.servers.uncached_servers()) and not self._run.offline:
                faults = await self.servers.discover(new, seconds=PATIENCE_SECONDS)
                self._run.notices += faults.values()
            self._offer_again()

    async def reload(self) -> str:
        """Follow the settings as they are now; what came of it, in words. Settings that cannot be
        read leave everything as it is."""
        from hermes.config.load import load

        config = await asyncio.to_thread(load, self._run.home, env=self._run.env)
        if broken := next((each for each in config.diagnostics if each.kind == "syntax"), None):
            return f"{broken.text}; the MCP servers stay as they are."
        wanted, wrong = usable_servers(config)
        async with self._offering:
            came, changed, went = await self.servers.replace(wanted)
            self._offered = True
            new = [name for name in (*came, *changed) if self.servers.cached_listing(name) is None]
            faults = await self.servers.discover(new, seconds=PATIENCE_SECONDS)
            self._offer_again()
        if not (came or changed or went or wrong):
            return UNCHANGED
        counts = f"{len(came)} added, {len(changed)} changed, {len(went)} removed"
        return "\n".join((f"MCP servers: {counts}.", *wrong, *faults.values()))

    async def follow(self, session: Session) -> None:
        """Watch the settings while somebody stays in the session, and say what has changed."""
        if not self.enabled:
            return
        if self._seen is None:
            self._seen = self._stamp()
        while True:
            await self._run.world.clock.sleep(LOOK_SECONDS)
            if (stamp := self._stamp()) == self._seen:
                continue
            self._seen = stamp
            said = await self.reload()
            if said != UNCHANGED:
                session.tell(said + self._hint(session))

    def _hint(self, session: Session) -> str:
        """Requests of a session go on beginning as they did, so one that began without any way to
        find tools does not get it."""
        opened = session.transcript.opened
        if not self._names or opened is None or "tool_search" in opened.tools:
            return ""
        return "\nTheir tools are found in sessions that begin from now on."

    def _stamp(self) -> tuple[int, int]:
        try:
            info = self._run.home.config.stat()
        except OSError:
            return 0, 0
        return info.st_mtime_ns, info.st_size

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.close()

    def _offer_again(self) -> None:
        from hermes.tools.catalogue import CatalogueEntry

        if self._offered:
            entries = [CatalogueEntry(spec, tool) for spec, tool in self.servers.list_tools()]
            before, self._names = self._names, tuple(entry.spec.name for entry in entries)
            self._tools.add(entries, instead_of=before)


def servers_of(
    run: RunContext,
    changed: Callable[[], None] = lambda: None,
    *,
    extra: tuple[McpServer, ...] = (),
) -> ServerPool:
    """The servers that the settings name, and `extra` ones in their place or besides."""
    wanted, faults = usable_servers(run.config)
    run.notices += faults
    others = {server.name for server in extra}
    wanted = [*(server for server in wanted if server.name not in others), *extra]
    return servers_for(run, wanted, changed)


def servers_for(
    run: RunContext,
    wanted: Sequence[McpServer],
    changed: Callable[[], None] = lambda: None,
    *,
    folder: str = "",
) -> ServerPool:
    """These servers and no others; they start in the folder, else where sessions do."""
    from hermes.mcp.pool import ServerEnvironment, ServerPool

    home = run.home
    around = ServerEnvironment(
        cache=home.ensure_folder(home.cache / "mcp"),
        logs=home.logs / "mcp",
        tokens=home.root / "mcp-tokens",
        variables=dict(run.env),
        person=run.user_home,
        folder=folder or str(Path(run.settings.terminal.cwd).expanduser().resolve()),
    )
    return ServerPool(
        wanted,
        around,
        run.world,
        scan=_scan,
        changed=changed,
    )


def usable_servers(config: Config) -> tuple[list[McpServer], list[str]]:
    """Those that can be used, and what is wrong with the others."""
    servers: list[McpServer] = []
    faults: list[str] = []
    off = config.settings.agent.disabled_toolsets
    for name, own in sorted(config.settings.mcp_servers.items()):
        if not own.enabled or f"mcp-{name}" in off:
            continue
        server = server_of(name, own)
        if fault := server.fault():
            faults.append(fault)
        else:
            servers.append(server)
    return servers, faults


def server_of(name: str, own: McpServerSettings) -> McpServer:
    from hermes.codec.json import convert, plain
    from hermes.mcp.server import McpServer

    return convert(McpServer, {"name": name, **plain(own)})


def one_server(run: RunContext, name: str) -> McpServer:
    """NotFound names those that there are."""
    known = run.settings.mcp_servers
    if name not in known:
        raise NotFound(
            f"There is no MCP server named {name!r}; `hermes mcp list` shows all.",
            near=tuple(known),
        )
    return server_of(name, known[name])


def _scan(text: str) -> tuple[str, bool]:
    from hermes.policy.scan.scanner import TextScanner

    scanned = TextScanner().scan(text, "tool_description")
    if scanned.verdict == "safe":
        return "", False
    return scanned.findings[0].id, scanned.verdict == "dangerous"


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
