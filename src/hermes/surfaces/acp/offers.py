"""The authentication methods and models that an editor offers."""

from __future__ import annotations

from acp.schema import (
    AuthMethodAgent,
    ClientCapabilities,
    EnvVarAuthMethod,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    TerminalAuthMethod,
)

from hermes.app.build import App
from hermes.core.session import Session
from hermes.models.shelf import ModelBrowser

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


def model_options(app: App, session: Session) -> SessionConfigOptionSelect:
    """The models of usable providers, and the current one."""
    transcript = session.transcript
    current = f"{transcript.provider}:{transcript.model}"
    shelf = ModelBrowser(app.models)
    names = [current]
    for row in shelf.providers():
        if row.usable:
            names += [f"{row.name}:{model}" for model in shelf.known_models(row.name)]
    return SessionConfigOptionSelect(
        type="select",
        id=MODEL,
        name="Model",
        category="model",
        current_value=current,
        options=[SessionConfigSelectOption(value=name, name=name) for name in dict.fromkeys(names)],
    )
