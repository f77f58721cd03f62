"""Converts the MCP servers that an editor passes into server settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from hermes.config.mcp_settings import McpServerSettings

EditorServers = Sequence[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio]
# Keeps rules for a configured server from applying to one with the same name.
SERVER_PREFIX = "acp_"


def editor_mcp_servers(brought: EditorServers) -> dict[str, McpServerSettings]:
    """Settings by prefixed name. Skips servers that only the editor can reach."""
    found: dict[str, McpServerSettings] = {}
    for each in brought:
        name = f"{SERVER_PREFIX}{each.name}"
        match each:
            case McpServerStdio(command=command, args=args):
                env = {one.name: one.value for one in each.env}
                found[name] = McpServerSettings(command=command, args=tuple(args), env=env)
            case HttpMcpServer(url=url):
                found[name] = McpServerSettings(url=url, headers=_headers(each.headers))
            case SseMcpServer(url=url):
                headers = _headers(each.headers)
                found[name] = McpServerSettings(url=url, transport="sse", headers=headers)
            case AcpMcpServer():
                pass
    return found


def _headers(headers: Iterable[object]) -> dict[str, str]:
    return {getattr(each, "name", ""): getattr(each, "value", "") for each in headers}
