"""Adds taint tracking to the workspace of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.policy.taint.tracker import LocalTaintTracker
from hermes.policy.taint.workspace import TaintTrackedWorkspace

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.turn import SessionDeps
    from hermes.policy.rules import Rules
    from hermes.policy.taint.suspects import Suspects


def track_taint(
    run: RunContext, session_id: str, rules: Rules, suspects: Suspects, parts: SessionDeps
) -> None:
    if parts.workspace.is_remote:
        from hermes.policy.taint.remote import track_remote_taint  # most sessions are local

        track_remote_taint(run, session_id, rules, suspects, parts)
        return
    parts.workspace = TaintTrackedWorkspace(
        parts.workspace, LocalTaintTracker(rules, suspects, run.redactor.text)
    )
