"""The models, authentication methods and MCP servers of an editor's session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp.schema import (
    AcpMcpServer,
    AuthMethodAgent,
    ClientCapabilities,
    EnvVarAuthMethod,
    HttpMcpServer,
    McpServerStdio,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SseMcpServer,
    TerminalAuthMethod,
)

from hermes.codec.values import JsonObject
from hermes.config.extension_settings import McpServerSettings
from hermes.core.session import Session
from hermes.models.browser import ModelBrowser
from hermes.models.models import Models

EditorServers = Sequence[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio]
# Keeps rules for a configured server from applying to one with the same name.
SERVER_PREFIX = "acp_"


def editor_mcp_servers(servers: EditorServers) -> dict[str, McpServerSettings]:
    """Settings by prefixed name. Skips servers that only the editor can reach."""
    settings: dict[str, McpServerSettings] = {}
    for each in servers:
        name = f"{SERVER_PREFIX}{each.name}"
        match each:
            case McpServerStdio(command=command, args=args):
                env = {one.name: one.value for one in each.env}
                settings[name] = McpServerSettings(command=command, args=tuple(args), env=env)
            case HttpMcpServer(url=url):
                settings[name] = McpServerSettings(url=url, headers=_headers(each.headers))
            case SseMcpServer(url=url):
                headers = _headers(each.headers)
                settings[name] = McpServerSettings(url=url, transport="sse", headers=headers)
            case AcpMcpServer():
                pass
    return settings


def _headers(headers: Iterable[object]) -> dict[str, str]:
    return {getattr(each, "name", ""): getattr(each, "value", "") for each in headers}


MODEL = "model"
CONFIGURED_AUTH = AuthMethodAgent(
    id="configured",
    name="Configured provider",
    description="The provider chosen with `hermes model`.",
)
SETUP_AUTH = TerminalAuthMethod(
    type="terminal",
    id="hermes-setup",
    name="Set up Hermes",
    description="Choose a provider and a model in the terminal.",
    args=["--setup"],
)


def auth_methods(
    able: ClientCapabilities,
) -> list[EnvVarAuthMethod | TerminalAuthMethod | AuthMethodAgent]:
    """Editors with a terminal also offer the setup there."""
    return [CONFIGURED_AUTH, SETUP_AUTH] if able.auth and able.auth.terminal else [CONFIGURED_AUTH]


def _model_names(models: Models, session: Session) -> list[str]:
    """The current model, then those of usable providers."""
    transcript = session.transcript
    browser = ModelBrowser(models)
    names = [f"{transcript.provider}:{transcript.model}"]
    for row in browser.providers():
        if row.usable:
            names += [f"{row.name}:{model}" for model in browser.known_models(row.name)]
    return list(dict.fromkeys(names))


def model_state(models: Models, session: Session) -> JsonObject:
    """The models in the older form of the protocol."""
    names = _model_names(models, session)
    available = [{"modelId": name, "name": name} for name in names]
    return {"currentModelId": names[0], "availableModels": available}


def model_options(models: Models, session: Session) -> SessionConfigOptionSelect:
    """The models of usable providers, and the current one."""
    names = _model_names(models, session)
    return SessionConfigOptionSelect(
        type="select",
        id=MODEL,
        name="Model",
        category="model",
        current_value=names[0],
        options=[SessionConfigSelectOption(value=name, name=name) for name in names],
    )
