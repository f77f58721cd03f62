"""Transports: a child process, or HTTP with or without a login."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from hermes.core.errors import ConfigError
from hermes.mcp.child import ChildFiles, child_streams
from hermes.mcp.faults import Unreachable
from hermes.mcp.server import McpServer, child_environment

READ_SECONDS = 300.0
Streams = AbstractAsyncContextManager[Any]


def streams_of(
    server: McpServer,
    *,
    variables: Mapping[str, str],
    place: ChildFiles,
    auth: httpx2.Auth | None,
) -> Streams:
    """Returns the streams to a server; Unreachable when the command does not exist."""
    if server.command:
        env = child_environment(server, variables)
        return child_streams(_command(server, env), env=env, cwd=server.cwd, place=place)
    if server.transport == "sse":
        return sse_client(
            server.url,
            headers=server.headers,
            auth=auth,
            timeout=server.connect_timeout,
            httpx_client_factory=_factory(server),
        )
    return _HttpStreams(server, auth)


class _HttpStreams:
    """Streamable HTTP with its own client."""

    def __init__(self, server: McpServer, auth: httpx2.Auth | None) -> None:
        timeout = httpx2.Timeout(server.connect_timeout, read=READ_SECONDS)
        self._client = _factory(server)(headers=server.headers, timeout=timeout, auth=auth)
        self._inner = streamable_http_client(server.url, http_client=self._client)

    async def __aenter__(self) -> Any:
        await self._client.__aenter__()
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        try:
            return await self._inner.__aexit__(*error)
        finally:
            await self._client.__aexit__(*error)


def _command(server: McpServer, env: Mapping[str, str]) -> tuple[str, ...]:
    found = shutil.which(server.command, path=env.get("PATH", ""))
    if found is None and not Path(server.cwd, server.command).is_file():
        raise Unreachable(f"MCP server {server.name}: command {server.command!r} was not found.")
    return (found or server.command, *server.args)


def _factory(server: McpServer) -> Any:
    verify = _tls_context(server)

    def make(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=verify)

    return make


def _tls_context(server: McpServer) -> ssl.SSLContext | bool:
    """Returns the TLS settings: trusted certificates and client certificate."""
    if server.ssl_verify is True and not server.client_cert:
        return True
    try:
        context = ssl.create_default_context()
        if isinstance(server.ssl_verify, str):
            context.load_verify_locations(str(Path(server.ssl_verify).expanduser()))
        elif not server.ssl_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if server.client_cert:
            cert, key, password = (*server.client_cert, "", "")[:3]
            context.load_cert_chain(
                Path(cert).expanduser(), Path(key).expanduser() if key else None, password or None
            )
    except OSError as error:
        raise ConfigError(
            f"The certificates of mcp_servers.{server.name} cannot be loaded: {error}."
        ) from error
    return context
