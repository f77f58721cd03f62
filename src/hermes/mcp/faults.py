"""How a call of a foreign server can fail, so that the model and the link know what to do."""

from __future__ import annotations

from hermes.core.errors import ToolError
from hermes.mcp.server import Server


class ServerFault(ToolError):
    """The server could not be used. `retryable` means that the same call may work later."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class Unreachable(ServerFault):
    """There is no connection, so nothing was done."""


class NeedsLogin(ServerFault):
    def __init__(self, server: str) -> None:
        super().__init__(f"MCP server {server} needs a login: run `hermes mcp login {server}`.")


class Locked(NeedsLogin):
    """The settings know nothing of a login, and there is one."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.args = (
            f"MCP server {server} wants a login or a key: set mcp_servers.{server}.auth to oauth "
            f"and run `hermes mcp login {server}`, or give it the header that it wants.",
        )


class Barred(NeedsLogin):
    """The login that the settings hold is refused, so no person can help but by other settings."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(server)
        self.args = (f"MCP server {server} refuses the login of the settings: {why}",)


class NeedsScope(NeedsLogin):
    """The login is good, but not for this."""

    def __init__(self, server: str, scope: str) -> None:
        super().__init__(server)
        words = f" ({scope})" if scope else ""
        self.args = (
            f"MCP server {server} wants more rights for this{words}: run "
            f"`hermes mcp login {server}` to grant them.",
        )


class Lost(ServerFault):
    """The connection broke while the call ran: whether it was carried out is not known."""


class Expired(ServerFault):
    """The server has forgotten the session before it looked at the call."""


class Late(ServerFault):
    pass


class Refused(ServerFault):
    """The server answered, with an error of the protocol."""


class MissingLibrary(ServerFault):
    def __init__(self) -> None:
        super().__init__(
            "Foreign servers need the official protocol library: "
            "install it with `pip install hermes-agent[mcp]`."
        )


def masked(server: Server, text: str) -> str:
    """Without the values that the settings give to the server."""
    for secret in server.secrets():
        text = text.replace(secret, "***")
    return text
