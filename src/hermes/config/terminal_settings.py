"""Settings of where commands run, and the variables that override them."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.kinds import Count, Positive, Price, Seconds

Backend = Literal["local", "ssh", "docker", "podman", "singularity", "modal", "daytona"]
IMAGE = "nikolaik/python-nodejs:python3.11-nodejs20"


class TerminalSettings(Value):
    """Where and how commands run."""

    backend: Annotated[Backend, "The place of files and commands; `local` is this machine."] = (
        "local"
    )
    cwd: Annotated[str, "Folder in which sessions start; `.` is the folder of the call."] = "."
    timeout: Annotated[Seconds, "Seconds that a command may take unless it asks for more."] = 180
    max_foreground_timeout: Annotated[Seconds, "The most that a command may ask for."] = 600
    persistent_shell: Annotated[bool, "Keep folder, variables and functions between commands."] = (
        True
    )
    env_passthrough: Annotated[
        tuple[str, ...], "Variables that commands may see although they look secret."
    ] = ()
    shell_init_files: Annotated[tuple[str, ...], "Files to source when a shell starts."] = ()
    auto_source_bashrc: Annotated[bool, "Source ~/.bashrc when a shell starts."] = True
    confinement: Annotated[
        Literal["off", "auto", "bubblewrap", "landlock"],
        "What keeps commands inside the workspace; `auto` takes what works here, if anything.",
    ] = "auto"
    confinement_strict: Annotated[
        bool, "No tool folders, no sockets and temporary files of its own for confined commands."
    ] = False
    confinement_network: Annotated[bool, "Confined commands may use the network."] = True
    confinement_hidden: Annotated[
        tuple[str, ...], "Paths that confined commands cannot see, besides the usual ones."
    ] = ()
    confinement_writable: Annotated[
        tuple[str, ...], "Paths outside the workspace that confined commands may change."
    ] = ()
    ssh_host: Annotated[str, "ssh: the machine, or its name in your ssh settings."] = ""
    ssh_user: Annotated[str, "ssh: who to be there."] = ""
    ssh_port: Annotated[Positive, "ssh: the port."] = 22
    ssh_key: Annotated[str, "ssh: a file with a private key; empty leaves it to ssh."] = ""
    ssh_config: Annotated[str, "ssh: a file to read instead of ~/.ssh/config."] = ""
    docker_image: Annotated[str, "docker, podman: the image."] = IMAGE
    docker_volumes: Annotated[tuple[str, ...], "docker, podman: what is mounted, `from:to`."] = ()
    docker_mount_cwd_to_workspace: Annotated[
        bool, "docker, podman: the folder of the call becomes /workspace."
    ] = False
    docker_forward_env: Annotated[
        tuple[str, ...], "docker, podman: variables of this machine to take along."
    ] = ()
    docker_env: Annotated[dict[str, str], "docker, podman: variables to set."] = {}
    docker_network: Annotated[bool, "docker, podman: with a network."] = True
    docker_run_as_host_user: Annotated[bool, "docker, podman: run as you, not as root."] = False
    docker_extra_args: Annotated[
        tuple[str, ...], "docker, podman: more options of the engine's `run`."
    ] = ()
    docker_engine_args: Annotated[
        tuple[str, ...], "docker, podman: options of the engine itself."
    ] = ()
    singularity_image: Annotated[str, "singularity: the image."] = f"docker://{IMAGE}"
    scratch_dir: Annotated[str, "singularity: where changes are kept."] = ""
    modal_image: Annotated[str, "modal: the image."] = IMAGE
    daytona_image: Annotated[str, "daytona: the image; empty is the service's own."] = ""
    container_cpu: Annotated[Price, "Processors of a container or sandbox; 0 for no limit."] = 1
    container_memory: Annotated[Count, "Its memory in MB; 0 for no limit."] = 5_120
    container_disk: Annotated[Count, "Its disk in MB, where that can be limited."] = 51_200
    container_persistent: Annotated[bool, "Keep its files when a session is left."] = True
    lifetime_seconds: Annotated[
        Count, "Seconds after which an idle container or sandbox is stopped; 0 for never."
    ] = 300


# Variable: the key below `terminal`.
TERMINAL_VARIABLES = {
    "TERMINAL_ENV": "backend",
    "TERMINAL_CWD": "cwd",
    "TERMINAL_TIMEOUT": "timeout",
    "TERMINAL_MAX_FOREGROUND_TIMEOUT": "max_foreground_timeout",
    "TERMINAL_PERSISTENT_SHELL": "persistent_shell",
    "TERMINAL_SSH_HOST": "ssh_host",
    "TERMINAL_SSH_USER": "ssh_user",
    "TERMINAL_SSH_PORT": "ssh_port",
    "TERMINAL_SSH_KEY": "ssh_key",
    "TERMINAL_DOCKER_IMAGE": "docker_image",
    "TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE": "docker_mount_cwd_to_workspace",
    "TERMINAL_DOCKER_RUN_AS_HOST_USER": "docker_run_as_host_user",
    "TERMINAL_DOCKER_NETWORK": "docker_network",
    "TERMINAL_SINGULARITY_IMAGE": "singularity_image",
    "TERMINAL_SCRATCH_DIR": "scratch_dir",
    "TERMINAL_MODAL_IMAGE": "modal_image",
    "TERMINAL_DAYTONA_IMAGE": "daytona_image",
    "TERMINAL_CONTAINER_CPU": "container_cpu",
    "TERMINAL_CONTAINER_MEMORY": "container_memory",
    "TERMINAL_CONTAINER_DISK": "container_disk",
    "TERMINAL_CONTAINER_PERSISTENT": "container_persistent",
    "TERMINAL_LIFETIME_SECONDS": "lifetime_seconds",
}
