"""Ends calls whose Hermes died, so that what they did can be undone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hermes.undo.attribution import (
    OpenCall,
    attribute_changes,
    compare,
    merge_changes,
    with_losses,
)
from hermes.undo.calls import CallBody, RecordedCall
from hermes.undo.restore import end_undo
from hermes.undo.script_effects import ScriptEffects

if TYPE_CHECKING:
    from hermes.undo.change_recorder import ChangeRecorder

STOPPED = "Hermes was stopped while it ran."


def end_interrupted_call(recorder: ChangeRecorder, call: RecordedCall) -> None:
    """End a call whose Hermes died. Every difference counts as a change of a command; a background
    process made only what its text names."""
    if call.kind == "undo":
        end_undo(recorder.store, call)
        return
    open_call = OpenCall(call.id, call.kind, call.body, call.body.intent or ScriptEffects())
    if call.kind == "background":
        _end_background(recorder, open_call)
        return
    if call.kind == "command":
        open_call.before = recorder.store.manifest(call.manifest) or {}
        if not open_call.before:
            recorder.calls.end(call.id, CallBody(changes=call.changes, notes=(STOPPED,)))
            return
        open_call.body = replace(call.body, changes=(), notes=(), taken=(), ended=0)
    recorder.end(open_call)


def _end_background(recorder: ChangeRecorder, open_call: OpenCall) -> None:
    """Add what happened since the last scan of the dead Hermes. The process may still run, but its
    later changes are not recorded."""
    before = recorder.store.newest_manifest(recorder.root) or {}
    changes = compare(before, recorder.scan_again(open_call).entries)
    known = {
        (change.name, change.after)
        for call in recorder.calls.since(open_call.call_id)
        for change in call.changes
    }
    fresh = [
        each
        for each in attribute_changes(open_call, changes)
        if (each.name, each.after) not in known
    ]
    if not open_call.intent.complete:
        # They cannot be told from edits of the user.
        fresh = [replace(each, sure=False) for each in fresh]
    body = merge_changes(open_call.body, with_losses(fresh, {}))
    if body.changes:
        recorder.calls.end(open_call.call_id, replace(body, intent=None, ended=time.time_ns()))
    else:
        recorder.calls.drop((open_call.call_id,))
