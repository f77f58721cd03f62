"""Puts a witness around all that a session has for its files, whoever brought it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.policy.taint.sight import Witness
from hermes.policy.taint.witnessed import Witnessed

if TYPE_CHECKING:
    from hermes.app.build import App
    from hermes.core.parts import Parts


def witness(app: App, session_id: str, parts: Parts) -> None:
    if parts.workspace.far:
        from hermes.app.policy.witnessing_far import witness_far  # few sessions work elsewhere

        witness_far(app, session_id, parts)
        return
    rules, clean = app.tuned[session_id].rules, app.secrecy.text
    parts.workspace = Witnessed(parts.workspace, Witness(rules, app.commons.suspects, clean))
