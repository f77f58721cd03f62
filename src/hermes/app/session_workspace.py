"""Where the files and commands of a session live, as the settings say: chosen, joined to undo and
explained."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.core.effects import Effect, RunCommand
from hermes.core.ports import Workspace
from hermes.core.session_request import Opening
from hermes.undo.undoable import Undoable
from hermes.workspaces.local import LocalWorkspace
from hermes.workspaces.terminal_settings import is_far, sudo_of

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.undo.intent import Intent
    from hermes.undo.protection import Protection as UndoProtection

# By which a command knows the home and the session that it runs for, where that is talked in, and
# whether anybody is there who could answer.
HOME, SESSION = "HERMES_HOME", "HERMES_SESSION_ID"
PLATFORM, INTERACTIVE = "HERMES_SESSION_PLATFORM", "HERMES_INTERACTIVE"


def workspace_of(app: App, session_id: str, root: str, opening: Opening) -> Workspace:
    """The workspace of one session. Nothing is contacted yet: see `arrived`. Commands see no secret
    but those that are named in the settings or lent to the session."""

    def lent() -> dict[str, str]:
        store = app.secret_stores.get(session_id)
        return {} if store is None else store.lent()

    if is_far(app.settings.terminal):
        # Few sessions work elsewhere, so the others do not pay for it.
        from hermes.workspaces.far.backends import far_workspace

        sudo = sudo_of(app.run, lambda: app.opened(session_id))
        return far_workspace(app.run, session_id, root, lent=lent, sudo=sudo)
    local = LocalWorkspace(
        root,
        state=app.home.sessions / session_id,
        world=app.world,
        env=ChainMap(_told(app, session_id, opening), app.commons.child_env),
        secret_env=lent,
        shell=app.commons.shell,
        confinement=app.commons.confinement,
        sudo=sudo_of(app.run, lambda: app.opened(session_id)),
    )
    return undoable(app, session_id, local)


def _told(app: App, session_id: str, opening: Opening) -> dict[str, str]:
    return {
        HOME: str(app.home.root),
        SESSION: session_id,
        PLATFORM: opening.platform,
        INTERACTIVE: "1" if opening.attended else "",
    }


def undoable(app: App, session_id: str, workspace: Workspace) -> Workspace:
    """The same with a way back, unless the person does not want one."""
    if not app.settings.checkpoints.enabled:
        return workspace

    def where() -> tuple[str, str]:
        session = app.opened(session_id)
        return session_id, session.transcript.turn_id if session else ""

    def protect() -> UndoProtection:
        # Only sessions that change something pay for it.
        from hermes.undo.service import undoing

        return undoing(app.run).protection(workspace.root, where)

    def warn(words: str) -> None:
        if session := app.opened(session_id):
            session.tell(words)

    return Undoable(
        workspace,
        protect,
        touched=partial(_touched, app, session_id, workspace.root),
        warn=warn,
        clean=app.secrecy.text,
    )


def within(workspace: Workspace, layer: Callable[[Workspace], Workspace]) -> Workspace:
    """The workspace with another layer, beneath what protects it."""
    if not isinstance(workspace, Undoable):
        return layer(workspace)
    workspace.put_beneath(layer)
    return workspace


def _touched(app: App, session_id: str, root: str, effect: RunCommand) -> Intent:
    """What the text of a command tells at a glance, or else what the rules found in it."""
    from hermes.undo.intent import read_intent  # needed with the first command only

    intent = read_intent(effect, app.person)
    tuned = app.tuned.get(session_id)
    if intent.complete or tuned is None:
        return intent
    verdict = tuned.rules.verdict(effect)
    return intent.informed(reads_only=verdict.reads_only, touched=verdict.touched, root=root)


async def preflight(workspace: Workspace, effect: Effect) -> tuple[str, ...]:
    """What of an effect could not be taken back, one sentence each."""
    if isinstance(workspace, Undoable):
        return await workspace.preflight(effect)
    return ()


async def arrived(workspace: Workspace) -> Workspace:
    """A far place is reached before a session begins in it; ConfigError says why it cannot be."""
    if workspace.is_remote:
        from hermes.workspaces.far.backends import reach

        await reach(workspace)
    return workspace


def root_of(app: App, cwd: str) -> str:
    """Where a session goes on that began in this folder."""
    if is_far(app.settings.terminal) or Path(cwd).is_dir():
        return cwd
    root = str(Path.cwd())
    if cwd:
        app.news.append(f"{cwd} is gone; this session goes on in {root}.")
    return root


def confines_unknown(app: App, workspace: Workspace) -> bool:
    """Whether commands run without a network, write only in the workspace and can be undone: then
    unknown programs may run."""
    wanted = app.commons.confinement
    strict = wanted.wanted != "off" and not (wanted.network or wanted.ordinary or wanted.writable)
    if not strict or workspace.is_remote or not app.settings.checkpoints.enabled:
        return False
    from hermes.workspaces.confinement.sandbox import Sandbox

    state = app.home.sessions / "none"
    return Sandbox(wanted, workspace.root, state, app.commons.child_env).protection().confined
