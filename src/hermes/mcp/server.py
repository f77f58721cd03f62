"""The settings of one MCP server and the errors of calls to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Literal

from hermes.codec.json import encode_sorted, plain
from hermes.codec.values import JsonValue, Value, replace
from hermes.core.errors import ConfigError, ToolError

_VARIABLE = r"\$\{([^{}]+)\}"
_KEPT_ENV = frozenset(("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"))
_KEPT_BEGINNINGS = ("LC_", "XDG_")
_SHORTEST_SECRET = 8


class ToolSelection(Value):
    """Selects tools by name or pattern; `include` wins over `exclude`."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    resources: bool = True
    prompts: bool = True


class Sampling(Value):
    """Limits of sampling."""

    enabled: bool = True
    model: str = ""
    allowed_models: tuple[str, ...] = ()
    max_tokens_cap: int = 4096
    timeout: float = 30
    max_rpm: int = 10
    max_tool_rounds: int = 5


class Elicitation(Value):
    """Limits of elicitation."""

    enabled: bool = True
    timeout: float = 300


class OAuth(Value):
    """OAuth settings. The grant `client_credentials` needs no person."""

    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"
    client_id: str = ""
    client_secret: str = ""
    private_key_file: str = ""
    signing_algorithm: str = "RS256"
    issuer: str = ""
    client_metadata_url: str = ""
    scope: str = ""
    redirect_host: str = "127.0.0.1"
    redirect_port: int = 0
    redirect_uri: str = ""
    timeout: float = 300


class McpServer(Value):
    """One server: a command to run, or a URL."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    transport: Literal["http", "sse"] = "http"
    headers: dict[str, str] = {}
    auth: Literal["", "header", "oauth"] = ""
    oauth: OAuth = OAuth()
    ssl_verify: bool | str = True
    client_cert: tuple[str, ...] = ()
    enabled: bool = True
    timeout: float = 300
    connect_timeout: float = 60
    keepalive_interval: float = 180
    idle_timeout_seconds: float = 0
    max_lifetime_seconds: float = 0
    supports_parallel_tool_calls: bool = False
    trust: Literal["full", "untrusted"] = "full"
    tools: ToolSelection = ToolSelection()
    sampling: Sampling = Sampling()
    elicitation: Elicitation = Elicitation()

    @property
    def origin(self) -> str:
        """The origin of its text, for the policy."""
        return f"mcp:{self.name}"

    @property
    def location(self) -> str:
        """Command or URL, for display."""
        return self.url or " ".join((self.command, *self.args))

    def fault(self) -> str:
        """Returns why the settings are invalid, or ""."""
        if bool(self.command) == bool(self.url):
            how = "has both a command and a url" if self.url else "has neither command nor url"
            return f"mcp_servers.{self.name} {how}; set exactly one of them."
        if self.auth == "oauth" and not self.url:
            return f"mcp_servers.{self.name}.auth: a login needs a url."
        if self.uses_client_credentials and not (self.oauth.client_id and self._has_proof):
            return (
                f"mcp_servers.{self.name}.oauth: client_credentials needs a client_id, and a "
                "client_secret or a private_key_file."
            )
        return ""

    @property
    def uses_client_credentials(self) -> bool:
        """Returns whether login uses client credentials."""
        return self.auth == "oauth" and self.oauth.grant == "client_credentials"

    @property
    def _has_proof(self) -> bool:
        return bool(self.oauth.client_secret or self.oauth.private_key_file)

    def fingerprint(self) -> str:
        """Identifies the server that these settings reach."""
        fields = plain(self)
        names = ("command", "args", "env", "cwd", "url", "transport", "headers", "auth")
        kept = {name: fields[name] for name in names if name in fields}
        return hashlib.sha256(encode_sorted(kept)).hexdigest()[:16]

    def is_reached_like(self, other: McpServer) -> bool:
        """Returns whether a connection serves both settings: they differ only in tool selection
        and limits."""
        return self.tuned_like(other) == other

    def tuned_like(self, other: McpServer) -> McpServer:
        return replace(
            self,
            timeout=other.timeout,
            trust=other.trust,
            tools=other.tools,
            sampling=replace(other.sampling, enabled=self.sampling.enabled),
            elicitation=replace(other.elicitation, enabled=self.elicitation.enabled),
        )

    def secrets(self) -> tuple[str, ...]:
        """Returns secret values to mask in messages."""
        values = (*self.env.values(), *self.headers.values(), self.oauth.client_secret)
        words = {word for value in values for word in value.split() if value}
        return tuple(
            sorted((w for w in words if len(w) >= _SHORTEST_SECRET), key=len, reverse=True)
        )


def expand_server(
    server: McpServer, variables: Mapping[str, str], *, home: str, folder: str
) -> McpServer:
    """Expands `${NAME}`, `${env:NAME}`, `${userHome}`, `${workspaceFolder}` and `${/}`; unset
    variables stay."""
    known = {**variables, "userHome": home, "workspaceFolder": folder, "/": "/"}
    return replace(
        server,
        command=_expand_text(server.command, known),
        args=tuple(_expand_text(arg, known) for arg in server.args),
        env={name: _expand_text(value, known) for name, value in server.env.items()},
        cwd=_expand_text(server.cwd, known) or folder,
        url=_expand_text(server.url, known),
        headers={name: _expand_text(value, known) for name, value in server.headers.items()},
        oauth=replace(
            server.oauth,
            client_id=_expand_text(server.oauth.client_id, known),
            client_secret=_expand_text(server.oauth.client_secret, known),
            private_key_file=_expand_text(server.oauth.private_key_file, known),
        ),
    )


def unset_variables(server: McpServer) -> tuple[str, ...]:
    """Returns variables that are still unset."""
    texts: list[JsonValue] = [server.command, server.cwd, server.url, *server.args]
    texts += [*server.env.values(), *server.headers.values()]
    texts += [server.oauth.client_id, server.oauth.client_secret]
    found = (name for text in texts for name in re.findall(_VARIABLE, str(text)))
    return tuple(dict.fromkeys(found))


def _expand_text(text: str, known: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].removeprefix("env:")
        return known.get(name, match[0])

    return re.sub(_VARIABLE, value, text)


def child_environment(server: McpServer, variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the child's environment: locale, paths and its own settings, but no keys of this
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
