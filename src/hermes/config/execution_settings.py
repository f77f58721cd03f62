"""Settings of the terminal backend and of security."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value
from hermes.config.schema import Count, NonNegative, Seconds

Backend = Literal["local", "ssh", "docker", "podman", "singularity", "modal", "daytona"]
IMAGE = "nikolaik/python-nodejs:python3.11-nodejs20"


class TerminalSettings(Value):
    """Where and how commands run."""

    backend: Annotated[
        Backend, "Where tools use files and run commands; `local` is this machine."
    ] = "local"
    cwd: Annotated[str, "Folder in which sessions start; `.` is the current folder."] = "."
    timeout: Annotated[Seconds, "Default timeout of a command, in seconds."] = 180
    max_foreground_timeout: Annotated[
        Seconds, "Maximum timeout that a command may request, in seconds."
    ] = 600
    persistent_shell: Annotated[
        bool, "Keep the folder, variables and functions between commands."
    ] = True
    env_passthrough: Annotated[
        tuple[str, ...], "Variables passed to commands although they look like secrets."
    ] = ()
    shell_init_files: Annotated[tuple[str, ...], "Files to source when a shell starts."] = ()
    auto_source_bashrc: Annotated[bool, "Source ~/.bashrc when a shell starts."] = True
    confinement: Annotated[
        Literal["off", "auto", "bubblewrap", "landlock"],
        "Sandbox that confines commands to the workspace; `auto` uses the fastest that works here.",
    ] = "auto"
    confinement_strict: Annotated[
        bool, "Hide tool folders, sockets and shared temporary files from confined commands."
    ] = False
    confinement_network: Annotated[bool, "Confined commands may use the network."] = True
    confinement_hidden: Annotated[
        tuple[str, ...], "Additional paths hidden from confined commands."
    ] = ()
    confinement_writable: Annotated[
        tuple[str, ...], "Paths outside the workspace that confined commands may write."
    ] = ()
    ssh_host: Annotated[str, "ssh: host, or an alias of your ssh configuration."] = ""
    ssh_user: Annotated[str, "ssh: user."] = ""
    ssh_port: Annotated[Count, "ssh: port; 0 uses that of the ssh configuration, or 22."] = 0
    ssh_key: Annotated[str, "ssh: private key file; empty uses the default of ssh."] = ""
    ssh_config: Annotated[str, "ssh: configuration file to use instead of ~/.ssh/config."] = ""
    docker_image: Annotated[str, "docker, podman: image."] = IMAGE
    docker_volumes: Annotated[
        tuple[str, ...], "docker, podman: volumes to mount, as `from:to`."
    ] = ()
    docker_mount_cwd_to_workspace: Annotated[
        bool, "docker, podman: mount the current folder as /workspace."
    ] = False
    docker_forward_env: Annotated[
        tuple[str, ...], "docker, podman: variables to forward from this machine."
    ] = ()
    docker_env: Annotated[dict[str, str], "docker, podman: variables to set."] = {}
    docker_network: Annotated[bool, "docker, podman: enable the network."] = True
    docker_run_as_host_user: Annotated[bool, "docker, podman: run as your user, not as root."] = (
        False
    )
    docker_extra_args: Annotated[tuple[str, ...], "docker, podman: extra options of `run`."] = ()
    docker_engine_args: Annotated[
        tuple[str, ...], "docker, podman: global options of the engine."
    ] = ()
    singularity_image: Annotated[str, "singularity: image."] = f"docker://{IMAGE}"
    scratch_dir: Annotated[str, "singularity: folder that stores changes to the image."] = ""
    modal_image: Annotated[str, "modal: image."] = IMAGE
    daytona_image: Annotated[str, "daytona: image; empty uses the default of the service."] = ""
    container_cpu: Annotated[NonNegative, "CPUs of a container or sandbox; 0 for no limit."] = 1
    container_memory: Annotated[Count, "Memory of a container in MB; 0 for no limit."] = 5_120
    container_disk: Annotated[
        Count, "Disk space of a container in MB, where it can be limited."
    ] = 51_200
    container_persistent: Annotated[bool, "Keep the files of a container after a session."] = True
    lifetime_seconds: Annotated[
        Count, "Idle seconds until a container or sandbox is stopped; 0 for never."
    ] = 300


class CodeExecutionSettings(Value):
    """Scripts that call tools (`execute_code`)."""

    timeout: Annotated[Seconds, "Maximum run time of a script, in seconds."] = 300
    max_tool_calls: Annotated[Count, "Maximum tool calls of one script."] = 50
    max_output_bytes: Annotated[
        Count, "Maximum output that the model sees; a file has the rest."
    ] = 50_000
    extra_tools: Annotated[
        tuple[str, ...], "Other tools that scripts may call, such as those of MCP servers."
    ] = ()


class PlanningSettings(Value):
    """Plans: steps with dependencies (`plan`, `hermes plan`)."""

    max_steps: Annotated[Count, "Maximum steps of a plan."] = 30
    max_parallel: Annotated[Count, "Maximum steps that run at the same time."] = 4
    step_timeout: Annotated[Seconds, "Default timeout of a step, in seconds."] = 300
    max_retries: Annotated[Count, "Maximum retries of a step after transient failures."] = 2
    max_replans: Annotated[Count, "How often a plan may be rewritten after a failure."] = 3
    confirm: Annotated[
        Literal["risky", "always", "never"],
        "Which plans you confirm before they run; `risky` change or send something.",
    ] = "risky"
    model: Annotated[str, "Model that writes plans; empty uses the main model."] = ""


# Settings below `terminal` that a variable overrides: `cwd` by TERMINAL_CWD, and so on.
TERMINAL_VARIABLES = {
    "TERMINAL_ENV": "backend",
    **{
        f"TERMINAL_{key.upper()}": key
        for key in """
            cwd timeout max_foreground_timeout persistent_shell ssh_host ssh_user ssh_port ssh_key
            docker_image docker_mount_cwd_to_workspace docker_run_as_host_user docker_network
            singularity_image scratch_dir modal_image daytona_image container_cpu container_memory
            container_disk container_persistent lifetime_seconds
        """.split()
    },
}


class BlocklistSettings(Value):
    """Blocked websites."""

    enabled: Annotated[bool, "Block the listed websites."] = False
    domains: Annotated[tuple[str, ...], "Domains, including subdomains, or patterns with `*`."] = ()
    shared_files: Annotated[tuple[str, ...], "Files with one domain or pattern per line."] = ()


class SecuritySettings(Value):
    redact_secrets: Annotated[
        bool, "Mask text that looks like a secret; configured secrets are always masked."
    ] = True
    allow_private_urls: Annotated[
        bool, "Allow URLs of this machine and private networks, but never metadata services."
    ] = False
    website_blocklist: BlocklistSettings = BlocklistSettings()
    trusted_dirs: Annotated[
        tuple[str, ...], "If set, files outside these folders are untrusted, like web pages."
    ] = ()
    context_scan: Annotated[
        Literal["block", "warn", "off"],
        "What happens to a project file that looks like a prompt injection.",
    ] = "block"
    trusted_hosts: Annotated[
        tuple[str, ...],
        "Hosts that may receive data without approval, even if untrusted text asks for it.",
    ] = ()
    write_safe_roots: Annotated[
        tuple[str, ...],
        "If set, files are written and deleted only below these folders.",
    ] = ()
