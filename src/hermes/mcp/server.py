"""The settings of one MCP server and the errors of calls to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from hermes.codec.json import encode_sorted, plain
from hermes.codec.values import replace
from hermes.config.extension_settings import McpServerSettings
from hermes.config.extras import need_extra
from hermes.core.errors import ConfigError, ToolError

_VARIABLE = r"\$\{([^{}]+)\}"
_KEPT_ENV = frozenset(("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"))
_KEPT_BEGINNINGS = ("LC_", "XDG_")
_SHORTEST_SECRET = 8


class McpServer(McpServerSettings, kw_only=True):
    """One server: a command to run, or a URL."""

    name: str

    @property
    def origin(self) -> str:
        """The origin of the server's text, for the policy."""
        return f"mcp:{self.name}"

    @property
    def location(self) -> str:
        """Command or URL, for display."""
        return self.url or " ".join((self.command, *self.args))

    def fault(self) -> str:
        """Return why the settings are invalid, or ""."""
        if bool(self.command) == bool(self.url):
            how = "has both a command and a url" if self.url else "has neither command nor url"
            return f"mcp_servers.{self.name} {how}; set exactly one of them."
        if self.auth == "oauth" and not self.url:
            return f"mcp_servers.{self.name}.auth: a login needs a url."
        has_proof = self.oauth.client_secret or self.oauth.private_key_file
        if self.uses_client_credentials and not (self.oauth.client_id and has_proof):
            return (
                f"mcp_servers.{self.name}.oauth: client_credentials needs a client_id, and a "
                "client_secret or a private_key_file."
            )
        return ""

    @property
    def uses_client_credentials(self) -> bool:
        """Returns whether login uses client credentials."""
        return self.auth == "oauth" and self.oauth.grant == "client_credentials"

    def fingerprint(self) -> str:
        """Return a hash that identifies the server that these settings reach."""
        fields = plain(self)
        names = ("command", "args", "env", "cwd", "url", "transport", "headers", "auth")
        kept = {name: fields[name] for name in names if name in fields}
        return hashlib.sha256(encode_sorted(kept)).hexdigest()[:16]

    def is_reached_like(self, other: McpServer) -> bool:
        """Return whether a connection serves both settings: they differ only in tool selection and
        limits."""
        tuned = replace(
            self,
            timeout=other.timeout,
            trust=other.trust,
            tools=other.tools,
            sampling=replace(other.sampling, enabled=self.sampling.enabled),
            elicitation=replace(other.elicitation, enabled=self.elicitation.enabled),
        )
        return tuned == other

    def secrets(self) -> tuple[str, ...]:
        """Return secret values to mask in messages."""
        values = (*self.env.values(), *self.headers.values(), self.oauth.client_secret)
        words = {word for value in values for word in value.split() if value}
        return tuple(
            sorted((w for w in words if len(w) >= _SHORTEST_SECRET), key=len, reverse=True)
        )


def expand_server(
    server: McpServer, variables: Mapping[str, str], *, home: str, folder: str
) -> McpServer:
    """Expand `${NAME}`, `${env:NAME}`, `${userHome}`, `${workspaceFolder}` and `${/}`; unset
    variables stay."""
    known = {**variables, "userHome": home, "workspaceFolder": folder, "/": "/"}

    def expand(text: str) -> str:
        return re.sub(
            _VARIABLE, lambda match: known.get(match[1].removeprefix("env:"), match[0]), text
        )

    own = server.oauth
    return replace(
        server,
        command=expand(server.command),
        args=tuple(expand(arg) for arg in server.args),
        env={name: expand(value) for name, value in server.env.items()},
        cwd=expand(server.cwd) or folder,
        url=expand(server.url),
        headers={name: expand(value) for name, value in server.headers.items()},
        oauth=replace(
            own,
            client_id=expand(own.client_id),
            client_secret=expand(own.client_secret),
            private_key_file=expand(own.private_key_file),
        ),
    )


def unset_variables(server: McpServer) -> tuple[str, ...]:
    """Return variables that are still unset."""
    texts = [server.command, server.cwd, server.url, *server.args]
    texts += [*server.env.values(), *server.headers.values()]
    texts += [server.oauth.client_id, server.oauth.client_secret]
    found = (name for text in texts for name in re.findall(_VARIABLE, text))
    return tuple(dict.fromkeys(found))


def child_environment(server: McpServer, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the child's environment: locale, paths and its own settings, but no keys of this
    process."""
    kept = {
        name: value
        for name, value in variables.items()
        if (name in _KEPT_ENV or name.startswith(_KEPT_BEGINNINGS)) and not value.startswith("()")
    }
    return {**kept, **server.env}


def require_valid(server: McpServer) -> McpServer:
    if fault := server.fault():
        raise ConfigError(fault)
    return server


class ServerFault(ToolError):
    """The server could not be used. `retryable` means that the same call may work later."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message, transient=retryable)
        self.retryable = retryable


class Unreachable(ServerFault):
    """There is no connection; nothing was executed."""


class IssuerFailed(Unreachable):
    """The authorization server issued no token for now; the stored login stays valid."""

    def __init__(self, server: str, why: str) -> None:
        text = f"did not respond ({why}); the login is kept, try again later."
        super().__init__(f"The authorization server of MCP server {server} {text}", retryable=True)


class NeedsLogin(ServerFault):
    """The server refuses requests until someone logs in or changes the settings."""

    def __init__(self, server: str, message: str = "") -> None:
        text = message or f"needs a login: run `hermes mcp login {server}`."
        super().__init__(f"MCP server {server} {text}")


class LoginRejected(NeedsLogin):
    """The configured login is rejected; only other settings can help."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(server, f"rejects the configured login: {why}")


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
        super().__init__(need_extra("MCP servers", "mcp"))


def mask_secrets(server: McpServer, text: str) -> str:
    """Mask the secrets of the server's settings in a text."""
    for secret in server.secrets():
        text = text.replace(secret, "***")
    return text
