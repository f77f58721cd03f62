"""Where commands run and how they are confined, as the settings say."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.config.child_environment import child_environment
from hermes.config.execution_settings import TerminalSettings
from hermes.policy.rule_setup import safe_roots
from hermes.workspaces.confinement.sandbox import Confinement
from hermes.workspaces.shell import describe_backend, is_remote_backend

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.workspaces.confinement.scope import ConfinementReport


def confinement_settings(run: RunContext) -> Confinement:
    terminal = run.settings.terminal
    return Confinement(
        wanted=terminal.confinement,
        network=terminal.confinement_network,
        ordinary=not terminal.confinement_strict,
        hidden=(run.state_dir, *map(_expand, terminal.confinement_hidden)),
        writable=tuple(map(_expand, terminal.confinement_writable)),
        cache=str(run.home.cache / "confined"),
        safe=safe_roots(run.settings.security),
    )


def command_environment(run: RunContext) -> dict[str, str]:
    return child_environment(run.env, run.settings.terminal.env_passthrough)


def start_folder(terminal: TerminalSettings, wanted: str) -> str:
    """Return the folder of a new session; on a remote machine, its path there."""
    if not is_remote_backend(terminal):
        return str(Path(wanted or terminal.cwd).expanduser().resolve())
    from hermes.workspaces.remote.backends import remote_folder

    return remote_folder(terminal)


async def describe_protection(run: RunContext) -> ConfinementReport:
    """Return what would confine the commands of a new session. Starts and contacts nothing."""
    terminal = run.settings.terminal
    if is_remote_backend(terminal):
        from hermes.workspaces.remote.backends import remote_protection

        return remote_protection(run)
    from hermes.workspaces.confinement.sandbox import Sandbox

    root, state = start_folder(terminal, ""), run.home.sessions / "none"
    sandbox = Sandbox(confinement_settings(run), root, state, command_environment(run))
    return await asyncio.to_thread(sandbox.protection)


async def describe_placement(run: RunContext) -> str:
    """Return where commands run and what confines them, for a banner."""
    if description := describe_backend(run.settings.terminal):
        return description
    found = await describe_protection(run)
    return f"commands confined ({found.kind})" if found.confined else "commands not confined"


def _expand(path: str) -> str:
    return str(Path(path).expanduser())
