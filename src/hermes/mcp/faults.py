"""Errors of calls to MCP servers."""

from __future__ import annotations

from hermes.core.errors import ToolError
from hermes.mcp.server import McpServer


class ServerFault(ToolError):
    """The server could not be used. `retryable` means that the same call may work later."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Unreachable(ServerFault):
    """There is no connection; nothing was executed."""


class NeedsLogin(ServerFault):
    def __init__(self, server: str) -> None:
        super().__init__(f"MCP server {server} needs a login: run `hermes mcp login {server}`.")


class LoginRequired(NeedsLogin):
    """The server requires a login that the settings do not configure."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.args = (
            f"MCP server {server} requires a login or a key: set mcp_servers.{server}.auth to "
            f"oauth and run `hermes mcp login {server}`, or set the header that it expects.",
        )


class LoginRejected(NeedsLogin):
    """The configured login is rejected; only other settings can help."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(server)
        self.args = (f"MCP server {server} rejects the configured login: {why}",)


class NeedsScope(NeedsLogin):
    """The login is valid but lacks a scope."""

    def __init__(self, server: str, scope: str) -> None:
        super().__init__(server)
        words = f" ({scope})" if scope else ""
        self.args = (
            f"MCP server {server} requires more permissions{words}: run "
            f"`hermes mcp login {server}` to grant them.",
        )


class ConnectionLost(ServerFault):
    """The connection broke during the call; its outcome is unknown."""


class SessionExpired(ServerFault):
    """The session expired before the call was executed."""


class CallTimeout(ServerFault):
    pass


class ServerError(ServerFault):
    """The server returned a protocol error."""


class MissingLibrary(ServerFault):
    def __init__(self) -> None:
        super().__init__(
            "MCP servers need the official library: install it with "
            "`pip install hermes-agent[mcp]`."
        )


def mask_secrets(server: McpServer, text: str) -> str:
    """Masks secrets from the server's settings."""
    for secret in server.secrets():
        text = text.replace(secret, "***")
    return text
