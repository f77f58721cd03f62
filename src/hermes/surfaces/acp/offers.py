"""What an editor lets its person choose: the way in, and the model."""

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
from hermes.models.shelf import Shelf

MODEL = "model"
READY = AuthMethodAgent(
    id="configured", name="Configured provider", description="What `hermes model` has chosen."
)
SETUP = TerminalAuthMethod(
    type="terminal",
    id="hermes-setup",
    name="Set up Hermes",
    description="Choose a provider and a model in the terminal.",
    args=["--setup"],
)


def ways_in(
    able: ClientCapabilities,
) -> list[EnvVarAuthMethod | TerminalAuthMethod | AuthMethodAgent]:
    """An editor with a terminal may also let the person set up Hermes there."""
    return [READY, SETUP] if able.auth and able.auth.terminal else [READY]


def models(app: App, session: Session) -> SessionConfigOptionSelect:
    """Those of providers that could be used now, and the present one."""
    transcript = session.transcript
    current = f"{transcript.provider}:{transcript.model}"
    shelf = Shelf(app.models)
    names = [current]
    for row in shelf.providers():
        if row.usable:
            names += [f"{row.name}:{model}" for model in shelf.known(row.name)]
    return SessionConfigOptionSelect(
        type="select",
        id=MODEL,
        name="Model",
        category="model",
        current_value=current,
        options=[SessionConfigSelectOption(value=name, name=name) for name in dict.fromkeys(names)],
    )
