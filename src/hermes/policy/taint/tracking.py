"""Puts taint tracking around the workspace of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.policy.taint.sight import Witness
from hermes.policy.taint.witnessed import Witnessed

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.parts import Parts
    from hermes.policy.rules import Rules
    from hermes.policy.suspects.suspects import Suspects


def witness(
    run: RunContext, session_id: str, rules: Rules, suspects: Suspects, parts: Parts
) -> None:
    if parts.workspace.is_remote:
        from hermes.policy.taint.remote import witness_far  # few sessions work remotely

        witness_far(run, session_id, rules, suspects, parts)
        return
    parts.workspace = Witnessed(parts.workspace, Witness(rules, suspects, run.redactor.text))
