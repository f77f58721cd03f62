"""Interprets the terminal settings for every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.terminal_settings import TerminalSettings
from hermes.core.errors import ConfigError
from hermes.workspaces.shell import ShellSettings
from hermes.workspaces.sudo import Sudo

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes.config.run_context import RunContext
    from hermes.core.session import Session

SUDO_SECONDS = 45.0
SUDO_QUESTION = "Password for sudo (not shown, stored or sent)"


def is_remote_backend(terminal: TerminalSettings) -> bool:
    return terminal.backend != "local"


def describe_backend(terminal: TerminalSettings) -> str:
    """Return where commands run, in a few words; "" for this machine."""
    match terminal.backend:
        case "local":
            return ""
        case "ssh":
            user = f"{terminal.ssh_user}@" if terminal.ssh_user else ""
            return f"commands run on {user}{terminal.ssh_host}"
        case "docker" | "podman":
            return f"commands run in a container of {terminal.docker_image}"
        case "singularity":
            return f"commands run in an instance of {terminal.singularity_image}"
        case "modal":
            return "commands run in a Modal sandbox"
        case "daytona":
            return "commands run in a Daytona sandbox"


def check_backend(terminal: TerminalSettings) -> None:
    """ConfigError for settings that cannot work."""
    if terminal.backend == "ssh" and not terminal.ssh_host:
        raise ConfigError(
            "terminal.backend is ssh, but no machine is named; "
            "`hermes config set terminal.ssh_host NAME`."
        )


def shell_settings(terminal: TerminalSettings) -> ShellSettings:
    return ShellSettings(
        persistent=terminal.persistent_shell,
        init_files=terminal.shell_init_files,
        auto_source_bashrc=terminal.auto_source_bashrc,
        passthrough=terminal.env_passthrough,
    )


def make_sudo(run: RunContext, find_session: Callable[[], Session | None]) -> Sudo:
    """The password that the user enters stays in this process."""

    async def ask() -> str | None:
        session = find_session()
        return await session.ask_secret(SUDO_QUESTION, SUDO_SECONDS) if session else None

    return Sudo(ask, known=run.config.secrets.get("SUDO_PASSWORD"))
