"""Creates remote workspaces from the settings: ssh, containers, cloud sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hermes.config.child_environment import child_environment
from hermes.config.execution_settings import TerminalSettings
from hermes.config.extras import need_extra
from hermes.core.errors import ConfigError, ToolError
from hermes.core.ports import Workspace
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.remote.calls import RemoteMachine
from hermes.workspaces.remote.cli import CliMachine
from hermes.workspaces.remote.containers import (
    WORKSPACE,
    ApptainerMachine,
    ContainerMachine,
)
from hermes.workspaces.remote.workspace import RemoteWorkspace
from hermes.workspaces.shell import check_backend, shell_settings

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.workspaces.shell import Sudo

# Folders to create where the settings name none; an ssh login has its own home.
_FOLDERS = {"ssh": "~", "modal": WORKSPACE, "daytona": "~/workspace"}


def remote_folder(terminal: TerminalSettings) -> str:
    """Return `terminal.cwd` if it can be a remote folder, else the default."""
    if terminal.cwd.startswith(("/", "~")):
        return terminal.cwd
    return _FOLDERS.get(terminal.backend, WORKSPACE)


def make_remote_workspace(
    run: RunContext,
    session_id: str,
    root: str,
    *,
    secret_env: Callable[[], Mapping[str, str]],
    sudo: Sudo,
) -> RemoteWorkspace:
    terminal = run.settings.terminal
    return RemoteWorkspace(
        make_machine(run, session_id),
        root,
        state=run.home.sessions / session_id,
        world=run.world,
        extra_env=_variables(run),
        secret_env=secret_env,
        shell=shell_settings(terminal),
        # Containers and cloud sandboxes have no login for which sudo asks for a password.
        sudo=sudo if terminal.backend == "ssh" else None,
        idle_seconds=0 if terminal.backend == "ssh" else terminal.lifetime_seconds,
        make_root=terminal.backend != "ssh",
    )


async def connect(workspace: Workspace) -> None:
    """Connect to the machine. Raise ConfigError, in one sentence, when it is not reachable."""
    assert isinstance(workspace, RemoteWorkspace)
    try:
        await workspace.connect()
    except ToolError as error:
        await workspace.close()
        fix = "`hermes config set terminal.backend local` works on this machine instead"
        # What follows the first sentence is for the model.
        what = str(error).split(". ")[0].rstrip(".")
        raise ConfigError(f"{what}; {fix}.") from error


def find_missing(run: RunContext) -> str:
    """Return the requirements of the backend that this machine lacks. Opens no connection."""
    try:
        if run.settings.terminal.backend == "modal":
            return "" if find_spec("modal") else need_extra("Modal sandboxes", "modal")
        if run.settings.terminal.backend == "daytona":
            make_machine(run, "none")
        else:
            check_backend(run.settings.terminal)
            _ = _make_cli_machine(run, "none").argv
    except (ToolError, ConfigError) as error:
        return str(error)
    return ""


def remote_protection(run: RunContext) -> ConfinementReport:
    return make_machine(run, "none").protection


def make_machine(run: RunContext, session_id: str) -> RemoteMachine:
    terminal = run.settings.terminal
    check_backend(terminal)
    match terminal.backend:
        case "modal":
            from hermes.workspaces.remote.modal import ModalMachine

            return ModalMachine(terminal, run.home.sessions / session_id)
        case "daytona":
            from hermes.workspaces.remote.daytona import URL, DaytonaMachine

            secrets = run.config.secrets
            api_key, url = secrets.get("DAYTONA_API_KEY"), secrets.get("DAYTONA_API_URL")
            try:
                return DaytonaMachine(terminal, session_id, api_key=api_key, url=url or URL)
            except ToolError as error:
                fix = "`hermes config set DAYTONA_API_KEY …`"
                raise ConfigError(f"Daytona needs DAYTONA_API_KEY; {fix}.") from error
        case _:
            return _make_cli_machine(run, session_id)


def _make_cli_machine(run: RunContext, session_id: str) -> CliMachine:
    terminal, cache = run.settings.terminal, run.home.cache
    env = child_environment(run.env, terminal.env_passthrough)
    if terminal.backend == "ssh":
        from hermes.workspaces.remote.ssh import SshMachine

        return SshMachine(terminal, cache / "ssh", env)
    if terminal.backend == "singularity":
        return ApptainerMachine(terminal, session_id, cache / "apptainer", env)
    return ContainerMachine(terminal, session_id, env)


def _variables(run: RunContext) -> dict[str, str]:
    """Return the variables of remote commands; secrets of model providers never leave this
    machine."""
    terminal = run.settings.terminal
    names = terminal.docker_forward_env
    taken = {name: run.env[name] for name in names if name in run.env}
    return {**child_environment(taken, names), **terminal.docker_env}
