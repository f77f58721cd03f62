"""What stands between the tools of a session and the world, put together for that session."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.session_workspace import confines_unknown
from hermes.core.ports import Workspace
from hermes.core.session_request import SessionRequest
from hermes.policy.rule_setup import policy_settings
from hermes.policy.rules import Rules
from hermes.skills.session_index import seeds_of

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.policy.session_files import TaintedFiles


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
