"""Creates remote workspaces from the settings: ssh, containers, cloud sandboxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.child_environment import child_environment
from hermes.config.execution_settings import TerminalSettings
from hermes.core.errors import ConfigError, ToolError
from hermes.core.ports import Workspace
from hermes.workspaces.confinement.scope import ConfinementReport
from hermes.workspaces.remote.calls import RemoteMachine
from hermes.workspaces.remote.cli import CliConnection, CliMachine
from hermes.workspaces.remote.containers import WORKSPACE
from hermes.workspaces.remote.workspace import RemoteWorkspace
from hermes.workspaces.runner import ResourceLimits
from hermes.workspaces.shell import check_backend, shell_settings

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.workspaces.shell import Sudo

PROCESSES = 256
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
    lent: Callable[[], Mapping[str, str]],
    sudo: Sudo,
) -> RemoteWorkspace:
    terminal = run.settings.terminal
    return RemoteWorkspace(
        make_machine(run, session_id),
        root,
        state=run.home.sessions / session_id,
        world=run.world,
        extra_env=_variables(run),
        secret_env=lent,
        shell=shell_settings(terminal),
        # Containers and cloud sandboxes have no login for which sudo asks for a password.
        sudo=sudo if terminal.backend == "ssh" else None,
        idle_seconds=0 if terminal.backend == "ssh" else terminal.lifetime_seconds,
        make_root=terminal.backend != "ssh",
    )


async def connect(workspace: Workspace) -> None:
    """ConfigError, in one sentence, when the machine is not reachable."""
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
    """Return what the backend needs and this machine lacks, without a connection."""
    try:
        if run.settings.terminal.backend == "modal":
            return "" if find_spec("modal") else "Modal sandboxes need the package modal"
        if run.settings.terminal.backend == "daytona":
            make_machine(run, "none")
        else:
            check_backend(run.settings.terminal)
            _ = _make_connection(run, "none").words
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
            return _modal(run, session_id)
        case "daytona":
            return _daytona(run, session_id)
        case _:
            return CliMachine(_make_connection(run, session_id))


def _make_connection(run: RunContext, session_id: str) -> CliConnection:
    terminal = run.settings.terminal
    env = child_environment(run.env, terminal.env_passthrough)
    match terminal.backend:
        case "ssh":
            from hermes.workspaces.remote.ssh import SshConnection, SshSettings

            settings = SshSettings(
                host=terminal.ssh_host,
                user=terminal.ssh_user,
                port=terminal.ssh_port,
                key=terminal.ssh_key,
                config=terminal.ssh_config,
            )
            return SshConnection(settings, run.home.cache / "ssh", env)
        case "singularity":
            from hermes.workspaces.remote.containers import ApptainerConnection, ApptainerSettings

            image = ApptainerSettings(
                image=terminal.singularity_image,
                persistent=terminal.container_persistent,
                scratch=terminal.scratch_dir,
                limits=_limits(terminal),
            )
            return ApptainerConnection(image, session_id, run.home.cache / "apptainer", env)
        case _:
            return _container(run, session_id)


def _container(run: RunContext, session_id: str) -> CliConnection:
    from hermes.workspaces.remote.containers import ContainerConnection, ContainerSettings

    terminal = run.settings.terminal
    settings = ContainerSettings(
        image=terminal.docker_image,
        engine="podman" if terminal.backend == "podman" else "",
        persistent=terminal.container_persistent,
        network=terminal.docker_network,
        mount=str(Path.cwd()) if terminal.docker_mount_cwd_to_workspace else "",
        volumes=terminal.docker_volumes,
        as_host_user=terminal.docker_run_as_host_user,
        limits=_limits(terminal),
        engine_options=terminal.docker_engine_args,
        extra=terminal.docker_extra_args,
    )
    env = child_environment(run.env, terminal.env_passthrough)
    return ContainerConnection(settings, session_id, env)


def _modal(run: RunContext, session_id: str) -> RemoteMachine:
    from hermes.workspaces.remote.modal import ModalMachine, ModalSettings

    terminal = run.settings.terminal
    settings = ModalSettings(
        image=terminal.modal_image,
        persistent=terminal.container_persistent,
        network=terminal.docker_network,
        limits=_limits(terminal),
    )
    return ModalMachine(settings, run.home.sessions / session_id)


def _daytona(run: RunContext, session_id: str) -> RemoteMachine:
    from hermes.workspaces.remote.daytona import DaytonaMachine, DaytonaSettings

    terminal = run.settings.terminal
    secrets = run.config.secrets
    given = {"url": url} if (url := secrets.get("DAYTONA_API_URL")) else {}
    settings = DaytonaSettings(
        key=secrets.get("DAYTONA_API_KEY"),
        image=terminal.daytona_image,
        persistent=terminal.container_persistent,
        network=terminal.docker_network,
        idle_minutes=max(1, terminal.lifetime_seconds // 60),
        limits=_limits(terminal),
        **given,
    )
    try:
        return DaytonaMachine(settings, session_id)
    except ToolError as error:
        fix = "`hermes config set DAYTONA_API_KEY …`"
        raise ConfigError(f"Daytona needs DAYTONA_API_KEY; {fix}.") from error


def _limits(terminal: TerminalSettings) -> ResourceLimits:
    return ResourceLimits(
        cpus=terminal.container_cpu,
        memory_mb=terminal.container_memory,
        disk_mb=terminal.container_disk,
        processes=PROCESSES,
    )


def _variables(run: RunContext) -> dict[str, str]:
    """Return the variables of remote commands; secrets of model providers never leave this
    machine."""
    terminal = run.settings.terminal
    names = terminal.docker_forward_env
    taken = {name: run.env[name] for name in names if name in run.env}
    return {**child_environment(taken, names), **terminal.docker_env}
