"""The settings of foreign servers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.kinds import Count, Positive, Price, Seconds
from hermes.config.schema import SECRET

Registry = Annotated[str, "Where `hermes mcp catalog --online` looks."]
Interval = Annotated[float, Meta(ge=5)]


class McpToolSettings(Value):
    include: Annotated[tuple[str, ...], "The only tools to take, by name or pattern."] = ()
    exclude: Annotated[tuple[str, ...], "Tools to leave out, unless `include` is set."] = ()
    resources: Annotated[bool, "Tools to list and read its resources."] = True
    prompts: Annotated[bool, "Tools to list and get its prompts."] = True


class McpSamplingSettings(Value):
    enabled: Annotated[bool, "The server may ask our model."] = True
    model: Annotated[str, "Which model answers; empty is the one of the session."] = ""
    allowed_models: Annotated[tuple[str, ...], "Models that the server may choose."] = ()
    max_tokens_cap: Annotated[Positive, "Longest answer in tokens."] = 4096
    timeout: Annotated[Seconds, "Seconds until such a request is given up."] = 30
    max_rpm: Annotated[Positive, "Requests in a minute."] = 10
    max_tool_rounds: Annotated[Count, "Rounds of tools in a row."] = 5


class McpElicitationSettings(Value):
    enabled: Annotated[bool, "The server may ask the person."] = True
    timeout: Annotated[Seconds, "Seconds to wait for the person."] = 300


class McpOauthSettings(Value):
    grant: Annotated[
        Literal["authorization_code", "client_credentials"],
        "Who logs in: a person, or these settings alone.",
    ] = "authorization_code"
    client_id: Annotated[str, "Who we are, at a server that registers nobody."] = ""
    client_secret: Annotated[str, SECRET, "The secret that goes with it."] = ""
    private_key_file: Annotated[str, "A PEM file to sign with, in place of a secret."] = ""
    signing_algorithm: Annotated[Literal["RS256", "ES256", "PS256", "EdDSA"], "How."] = "RS256"
    issuer: Annotated[str, "The only authorization server that may get the secret."] = ""
    client_metadata_url: Annotated[str, "Where a document of yours describes us (https)."] = ""
    scope: Annotated[str, "What to ask for; empty takes what the server names."] = ""
    redirect_host: Annotated[str, "Where the browser comes back to."] = "127.0.0.1"
    redirect_port: Annotated[Count, "Its port; 0 takes a free one."] = 0
    redirect_uri: Annotated[str, "The whole address, where it must be another."] = ""
    timeout: Annotated[Seconds, "Seconds to wait for the person."] = 300


class McpServerSettings(Value):
    """A foreign server: a command to start, or an address."""

    command: Annotated[str, "The program to start."] = ""
    args: Annotated[tuple[str, ...], "Its arguments."] = ()
    env: Annotated[dict[str, str], SECRET, "Variables that it gets besides the usual few."] = {}
    cwd: Annotated[str, "The folder that it starts in."] = ""
    url: Annotated[str, "The address of a server that runs elsewhere."] = ""
    transport: Annotated[Literal["http", "sse"], "How to speak to it."] = "http"
    headers: Annotated[dict[str, str], SECRET, "Headers of every request."] = {}
    auth: Annotated[Literal["", "header", "oauth"], "`oauth` wants a login."] = ""
    oauth: McpOauthSettings = McpOauthSettings()
    ssl_verify: Annotated[bool | str, "Whether to check certificates, or a file to check by."] = (
        True
    )
    client_cert: Annotated[tuple[str, ...], "Certificate, key and password that we show."] = ()
    enabled: Annotated[bool, "Whether it is used."] = True
    timeout: Annotated[Seconds, "Seconds that one call may take."] = 300
    connect_timeout: Annotated[Seconds, "Seconds that connecting may take."] = 60
    keepalive_interval: Annotated[
        Interval, "Seconds of rest after which it is asked whether it is still there."
    ] = 180
    idle_timeout_seconds: Annotated[Price, "Let it go after so long without a call; 0 never."] = 0
    max_lifetime_seconds: Annotated[Price, "Start it anew after so long; 0 never."] = 0
    supports_parallel_tool_calls: Annotated[bool, "It takes several calls at once."] = False
    trust: Annotated[
        Literal["full", "untrusted"], "`untrusted` asks before every tool that may change things."
    ] = "full"
    tools: McpToolSettings = McpToolSettings()
    sampling: McpSamplingSettings = McpSamplingSettings()
    elicitation: McpElicitationSettings = McpElicitationSettings()
