"""The workspace of a session on this machine: what its commands start from and are kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.workspaces.confinement.sandbox import Confinement
from hermes.workspaces.environment import child_environment
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.shell import ShellSettings

if TYPE_CHECKING:
    from hermes.app.build import App


def local_workspace(app: App, session_id: str, root: str) -> LocalWorkspace:
    """Commands see no secret but those that are named in the settings or lent to the session."""
    terminal = app.settings.terminal

    def lent() -> dict[str, str]:
        store = app.secret_stores.get(session_id)
        return {} if store is None else store.lent()

    return LocalWorkspace(
        root,
        state=app.home.sessions / session_id,
        world=app.world,
        env=child_environment(app.env, terminal.env_passthrough),
        lent=lent,
        shell=ShellSettings(
            persistent=terminal.persistent_shell,
            init_files=terminal.shell_init_files,
            auto_source_bashrc=terminal.auto_source_bashrc,
            passthrough=terminal.env_passthrough,
        ),
        confinement=Confinement(
            wanted=terminal.confinement,
            network=terminal.confinement_network,
            hidden=(app.state, *terminal.confinement_hidden),
            writable=terminal.confinement_writable,
            cache=str(app.home.cache / "confined"),
        ),
    )
