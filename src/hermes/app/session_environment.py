"""The workspace and the policy rules of a session."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.effects import Effect, RunCommand
from hermes.core.ports import Workspace
from hermes.core.session_request import SessionRequest
from hermes.policy.rule_setup import policy_settings
from hermes.policy.rules import Rules
from hermes.skills.session_index import seeds_of
from hermes.undo.workspace import UndoableWorkspace
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.shell import is_remote_backend, make_sudo

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.policy.session_files import TaintedFiles
    from hermes.undo.recorder import UndoRecorder as UndoProtection
    from hermes.undo.script_effects import ScriptEffects

# By which a command knows the home and the session that it runs for, where that is talked in, and
# whether anybody is there who could answer.
HOME, SESSION = "HERMES_HOME", "HERMES_SESSION_ID"
PLATFORM, INTERACTIVE = "HERMES_SESSION_PLATFORM", "HERMES_INTERACTIVE"


def build_workspace(app: App, session_id: str, root: str, opening: SessionRequest) -> Workspace:
    """The workspace of one session. Nothing is contacted yet: see `arrived`. Commands see no secret
    but those that are named in the settings or lent to the session."""

    def lent() -> dict[str, str]:
        store = app.secret_stores.get(session_id)
        return {} if store is None else store.environment()

    if is_remote_backend(app.settings.terminal):
        # Few sessions work elsewhere, so the others do not pay for it.
        from hermes.workspaces.remote.backends import make_remote_workspace

        sudo = make_sudo(app.run, lambda: app.find_session(session_id))
        return make_remote_workspace(app.run, session_id, root, lent=lent, sudo=sudo)
    local = LocalWorkspace(
        root,
        state=app.home.sessions / session_id,
        world=app.world,
        env=ChainMap(_session_variables(app, session_id, opening), app.shared.child_env),
        secret_env=lent,
        shell=app.shared.shell,
        confinement=app.shared.confinement,
        sudo=make_sudo(app.run, lambda: app.find_session(session_id)),
    )
    return add_undo(app, session_id, local)


def _session_variables(app: App, session_id: str, opening: SessionRequest) -> dict[str, str]:
    return {
        HOME: str(app.home.root),
        SESSION: session_id,
        PLATFORM: opening.platform,
        INTERACTIVE: "1" if opening.attended else "",
    }


def add_undo(app: App, session_id: str, workspace: Workspace) -> Workspace:
    """The same with a way back, unless the person does not want one."""
    if not app.settings.checkpoints.enabled:
        return workspace

    def where() -> tuple[str, str]:
        session = app.find_session(session_id)
        return session_id, session.transcript.turn_id if session else ""

    def protect() -> UndoProtection:
        # Only sessions that change something pay for it.
        from hermes.undo.service import make_undo_service

        return make_undo_service(app.run).make_recorder(workspace.root, where)

    def warn(words: str) -> None:
        if session := app.find_session(session_id):
            session.tell(words)

    return UndoableWorkspace(
        workspace,
        protect,
        touched=partial(_intent, app, session_id, workspace.root),
        warn=warn,
        clean=app.secrecy.text,
    )


def add_layer(workspace: Workspace, layer: Callable[[Workspace], Workspace]) -> Workspace:
    """The workspace with another layer, beneath what protects it."""
    if not isinstance(workspace, UndoableWorkspace):
        return layer(workspace)
    workspace.insert_layer(layer)
    return workspace


def _intent(app: App, session_id: str, root: str, effect: RunCommand) -> ScriptEffects:
    """What the text of a command tells at a glance, or else what the rules found in it."""
    from hermes.undo.script_effects import read_script_effects  # needed with the first command only

    intent = read_script_effects(effect, app.person)
    tuned = app.controls.get(session_id)
    if intent.complete or tuned is None:
        return intent
    verdict = tuned.rules.verdict(effect)
    return intent.with_policy(reads_only=verdict.reads_only, touched=verdict.touched, root=root)


async def preflight(workspace: Workspace, effect: Effect) -> tuple[str, ...]:
    """What of an effect could not be taken back, one sentence each."""
    if isinstance(workspace, UndoableWorkspace):
        return await workspace.preflight(effect)
    return ()


async def connect_workspace(workspace: Workspace) -> Workspace:
    """A far place is reached before a session begins in it; ConfigError says why it cannot be."""
    if workspace.is_remote:
        from hermes.workspaces.remote.backends import connect

        await connect(workspace)
    return workspace


def resume_folder(app: App, cwd: str) -> str:
    """Where a session goes on that began in this folder."""
    if is_remote_backend(app.settings.terminal) or Path(cwd).is_dir():
        return cwd
    root = str(Path.cwd())
    if cwd:
        app.news.append(f"{cwd} is gone; this session goes on in {root}.")
    return root


def confines_unknown(app: App, workspace: Workspace) -> bool:
    """Whether commands run without a network, write only in the workspace and can be undone: then
    unknown programs may run."""
    wanted = app.shared.confinement
    strict = wanted.wanted != "off" and not (wanted.network or wanted.ordinary or wanted.writable)
    if not strict or workspace.is_remote or not app.settings.checkpoints.enabled:
        return False
    from hermes.workspaces.confinement.sandbox import Sandbox

    state = app.home.sessions / "none"
    return Sandbox(wanted, workspace.root, state, app.shared.child_env).protection().confined


def session_rules(
    app: App, session_id: str, workspace: Workspace, opening: SessionRequest, began: float
) -> Rules:
    """`began` is when the session did, in seconds since 1970."""
    suspects: TaintedFiles = app.shared.suspects
    copies = None
    if workspace.is_remote:
        from hermes.policy.taint.remote import copies_of  # few sessions work elsewhere

        suspects = copies = copies_of(app.run, session_id)
    mode = app.settings.approvals.noninteractive_mode
    approved = not opening.attended and mode == "approve"
    return Rules(
        policy_settings(app.config, surface=opening.source, approved=approved, since=began),
        root=workspace.root,
        home=app.person,
        state=app.state,
        keep=lambda subject: _save_allowed(app, subject),
        now=app.world.clock.monotonic,
        far=workspace.is_remote,
        shipped=lambda path: seeds_of(app.home).is_as_shipped(Path(path)),
        mask=lambda text: app.secrecy.text(text, "log"),
        shell=lambda: workspace.shell,
        suspects=suspects,
        texts=copies,
        confined=partial(confines_unknown, app, workspace),
    )


def _save_allowed(app: App, subject: str) -> None:
    """What was allowed for ever goes into the settings, where the person can read it."""
    from hermes.config.edit import allow_always

    allow_always(app.home, subject)
