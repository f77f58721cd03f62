"""The workspace and the policy rules of a session."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import ChainMap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.effects import Effect, RunCommand
from hermes.core.ports import Workspace
from hermes.core.session_request import SessionRequest
from hermes.delegation.child_processes import ChildProcesses, OwnerWorkspace
from hermes.policy.rule_setup import policy_settings
from hermes.policy.rules import SessionPolicy
from hermes.undo.workspace import UndoableWorkspace, UndoService
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.shell import is_isolated, is_remote_backend, make_sudo
from hermes.workspaces.survivors import RECORDS, end_abandoned

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.core.session_deps import SessionDeps
    from hermes.policy.session_files import TaintedFiles
    from hermes.undo.script_effects import ScriptEffects

log = logging.getLogger(__name__)

# Variables that tell a command its home, session and platform, and whether a user is present.
HOME, SESSION = "HERMES_HOME", "HERMES_SESSION_ID"
PLATFORM, INTERACTIVE = "HERMES_SESSION_PLATFORM", "HERMES_INTERACTIVE"


def build_workspace(app: App, session_id: str, root: str, request: SessionRequest) -> Workspace:
    """The workspace of one session, not connected yet (see `connect_workspace`). Commands see only
    the secrets named in the settings or granted to the session."""

    def session_secrets() -> dict[str, str]:
        store = app.shared.secret_stores.get(session_id)
        return {} if store is None else store.environment()

    if is_remote_backend(app.context.settings.terminal):
        # Loaded for remote sessions only.
        from hermes.workspaces.remote.backends import make_remote_workspace

        sudo = make_sudo(app.context, lambda: app.find_session(session_id))
        return make_remote_workspace(
            app.context, session_id, root, secret_env=session_secrets, sudo=sudo
        )
    local = LocalWorkspace(
        root,
        state=app.context.home.sessions / session_id,
        world=app.context.world,
        env=ChainMap(_session_variables(app, session_id, request), app.shared.child_env),
        secret_env=session_secrets,
        shell=app.shared.shell,
        confinement=app.shared.confinement,
        sudo=make_sudo(app.context, lambda: app.find_session(session_id)),
    )
    return add_undo(app, session_id, local)


async def end_survivors(app: App) -> None:
    """End what commands of a killed Hermes left running, in any session of this home."""
    folder = app.context.home.sessions / RECORDS
    if folder.is_dir():
        for record in await asyncio.to_thread(end_abandoned, folder):
            log.warning(
                "ended the processes of an interrupted command", extra={"command": record.script}
            )


def _session_variables(app: App, session_id: str, request: SessionRequest) -> dict[str, str]:
    return {
        HOME: str(app.context.home.root),
        SESSION: session_id,
        PLATFORM: request.platform,
        INTERACTIVE: "1" if request.attended else "",
    }


def add_undo(app: App, session_id: str, workspace: Workspace) -> Workspace:
    """The workspace with undo, unless checkpoints are disabled."""
    if not app.context.settings.checkpoints.enabled:
        return workspace

    def where() -> tuple[str, str]:
        session = app.find_session(session_id)
        return session_id, session.transcript.turn_id if session else ""

    def warn(text: str) -> None:
        if session := app.find_session(session_id):
            session.tell(text)

    return UndoableWorkspace(
        workspace,
        lambda: UndoService(app.context).make_recorder(workspace.root, where),
        touched=partial(_intent, app, session_id, workspace.root),
        warn=warn,
        clean=app.context.redactor.text,
    )


def add_layer(workspace: Workspace, layer: Callable[[Workspace], Workspace]) -> Workspace:
    """Add a layer beneath the undo layer."""
    if not isinstance(workspace, UndoableWorkspace):
        return layer(workspace)
    workspace.insert_layer(layer)
    return workspace


def _intent(app: App, session_id: str, root: str, effect: RunCommand) -> ScriptEffects:
    """The effects that the text of a command shows, or else those that the policy found."""
    from hermes.undo.script_effects import read_script_effects  # loaded with the first command

    intent = read_script_effects(effect, app.context.user_home)
    controls = app.controls.get(session_id)
    if intent.complete or controls is None:
        return intent
    verdict = controls.policy.verdict(effect)
    return intent.with_policy(reads_only=verdict.reads_only, touched=verdict.touched, root=root)


async def preflight(workspace: Workspace, effect: Effect) -> tuple[str, ...]:
    """The parts of an effect that could not be undone, one sentence each."""
    if isinstance(workspace, UndoableWorkspace):
        return await workspace.preflight(effect)
    return ()


async def connect_workspace(workspace: Workspace) -> Workspace:
    """Connect a remote workspace before its session starts. Raises ConfigError with the reason."""
    if workspace.is_remote:
        from hermes.workspaces.remote.backends import connect

        await connect(workspace)
    return workspace


def restore_folder(app: App, cwd: str) -> str:
    """The folder in which a session that started in `cwd` is resumed."""
    if is_remote_backend(app.context.settings.terminal) or Path(cwd).is_dir():
        return cwd
    root = str(Path.cwd())
    if cwd:
        app.context.notices.append(f"{cwd} no longer exists; this session continues in {root}.")
    return root


def confines_unknown(app: App, workspace: Workspace) -> bool:
    """Whether commands have no network, write only in the workspace and can be undone. Then unknown
    programs may run."""
    confinement = app.shared.confinement
    strict = confinement.wanted != "off" and not (
        confinement.network or confinement.ordinary or confinement.writable
    )
    if not strict or workspace.is_remote or not app.context.settings.checkpoints.enabled:
        return False
    from hermes.workspaces.confinement.sandbox import Sandbox

    state = app.context.home.sessions / "none"
    return Sandbox(confinement, workspace.root, state, app.shared.child_env).protection().confined


def file_origins(app: App, cwd: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the origins of project files in the system prompt of a session in this folder."""
    if not paths:
        return ()
    from hermes.policy.session_files import SessionFiles
    from hermes.policy.sources import Sources

    trusted = app.context.settings.security.trusted_dirs
    files = SessionFiles(known=app.shared.taint)
    sources = Sources(os.path.realpath(cwd), app.context.user_home, trusted, files)
    found = (sources.of_path(os.path.realpath(path)) for path in paths)
    return tuple(dict.fromkeys(origin for origin in found if origin))


def session_policy(
    app: App, session_id: str, workspace: Workspace, request: SessionRequest, started: float
) -> SessionPolicy:
    """Build the policy of a session. `started` is its start in seconds since 1970."""
    tainted_files: TaintedFiles = app.shared.taint
    copies = None
    if workspace.is_remote:
        from hermes.policy.taint.remote import copies_of  # most sessions are local

        tainted_files = copies = copies_of(app.context, session_id)
    approvals = app.context.settings.approvals
    mode = approvals.cron_mode if request.source == "cron" else approvals.noninteractive_mode
    approved = not request.attended and mode == "approve"
    surface, child = request.source, request.child
    if child is not None:
        surface, approved = child.surface, child.approved
    return SessionPolicy(
        policy_settings(app.context.config, surface=surface, approved=approved, since=started),
        root=workspace.root,
        home=app.context.user_home,
        state=app.context.state_dir,
        keep=app.shared.allow_always,
        now=app.context.world.clock.monotonic,
        remote=workspace.is_remote,
        shipped=app.shared.is_as_shipped,
        mask=app.shared.mask,
        shell=lambda: workspace.shell,
        tainted_files=tainted_files,
        texts=copies,
        confined=partial(confines_unknown, app, workspace),
        isolated=is_isolated(app.context.settings.terminal),
        own_folders=(str(app.context.home.sessions / session_id),),
    )


def follow_children(app: App, session_id: str, deps: SessionDeps) -> None:
    """Let the background processes of a session include its background child sessions."""
    processes = ChildProcesses(deps.workspace, lambda: app.background, session_id)
    deps.workspace = OwnerWorkspace(deps.workspace, processes)
