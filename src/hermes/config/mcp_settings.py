"""Settings of MCP servers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.kinds import Count, NonNegative, Positive, Seconds
from hermes.config.schema import SECRET

Registry = Annotated[str, "Registry that `hermes mcp catalog --online` searches."]
Interval = Annotated[float, Meta(ge=5)]


class McpToolSettings(Value):
    include: Annotated[tuple[str, ...], "Only use these tools, by name or pattern."] = ()
    exclude: Annotated[tuple[str, ...], "Tools to exclude, unless `include` is set."] = ()
    resources: Annotated[bool, "Offer tools that list and read its resources."] = True
    prompts: Annotated[bool, "Offer tools that list and get its prompts."] = True


class McpSamplingSettings(Value):
    enabled: Annotated[bool, "Allow the server to call the model (sampling)."] = True
    model: Annotated[str, "Model for sampling; empty uses the session's."] = ""
    allowed_models: Annotated[tuple[str, ...], "Models that the server may choose."] = ()
    max_tokens_cap: Annotated[Positive, "Maximum answer length in tokens."] = 4096
    timeout: Annotated[Seconds, "Timeout of one request, in seconds."] = 30
    max_rpm: Annotated[Positive, "Requests per minute."] = 10
    max_tool_rounds: Annotated[Count, "Consecutive rounds of tool calls."] = 5


class McpElicitationSettings(Value):
    enabled: Annotated[bool, "Allow the server to ask the user."] = True
    timeout: Annotated[Seconds, "Seconds to wait for an answer."] = 300


class McpOauthSettings(Value):
    grant: Annotated[
        Literal["authorization_code", "client_credentials"],
        "Grant type: log in as a user, or as this client.",
    ] = "authorization_code"
    client_id: Annotated[str, "Client id, for a server without dynamic registration."] = ""
    client_secret: Annotated[str, SECRET, "Client secret."] = ""
    private_key_file: Annotated[str, "PEM file of a private key that replaces the secret."] = ""
    signing_algorithm: Annotated[
        Literal["RS256", "ES256", "PS256", "EdDSA"], "Signing algorithm."
    ] = "RS256"
    issuer: Annotated[str, "The only authorization server that may receive the secret."] = ""
    client_metadata_url: Annotated[str, "HTTPS URL of a client metadata document."] = ""
    scope: Annotated[str, "Scopes to request; empty uses those that the server names."] = ""
    redirect_host: Annotated[str, "Host of the redirect URI."] = "127.0.0.1"
    redirect_port: Annotated[Count, "Port of the redirect URI; 0 uses a free one."] = 0
    redirect_uri: Annotated[str, "Complete redirect URI, if it must differ."] = ""
    timeout: Annotated[Seconds, "Seconds to wait for the login."] = 300


class McpServerSettings(Value):
    """An MCP server: a command to start, or a URL."""

    command: Annotated[str, "Program to start."] = ""
    args: Annotated[tuple[str, ...], "Arguments of the program."] = ()
    env: Annotated[dict[str, str], SECRET, "Environment variables added to the default ones."] = {}
    cwd: Annotated[str, "Working directory."] = ""
    url: Annotated[str, "URL of a remote server."] = ""
    transport: Annotated[Literal["http", "sse"], "Transport of a remote server."] = "http"
    headers: Annotated[dict[str, str], SECRET, "Headers added to every request."] = {}
    auth: Annotated[Literal["", "header", "oauth"], "Authentication; `oauth` needs a login."] = ""
    oauth: McpOauthSettings = McpOauthSettings()
    ssl_verify: Annotated[bool | str, "Verify certificates, or a CA file to verify with."] = True
    client_cert: Annotated[tuple[str, ...], "Client certificate: file, key file, password."] = ()
    enabled: Annotated[bool, "Use this server."] = True
    timeout: Annotated[Seconds, "Timeout of one call, in seconds."] = 300
    connect_timeout: Annotated[Seconds, "Timeout of connecting, in seconds."] = 60
    keepalive_interval: Annotated[Interval, "Idle seconds after which a ping is sent."] = 180
    idle_timeout_seconds: Annotated[
        NonNegative, "Disconnect after this idle time; 0 for never."
    ] = 0
    max_lifetime_seconds: Annotated[NonNegative, "Reconnect after this time; 0 for never."] = 0
    supports_parallel_tool_calls: Annotated[bool, "The server accepts parallel tool calls."] = False
    trust: Annotated[
        Literal["full", "untrusted"],
        "`untrusted` asks before every tool that may have side effects.",
    ] = "full"
    tools: McpToolSettings = McpToolSettings()
    sampling: McpSamplingSettings = McpSamplingSettings()
    elicitation: McpElicitationSettings = McpElicitationSettings()
