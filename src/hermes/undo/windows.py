"""A call in progress, and its result."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.undo.calls import CallBody, CallKind, FileChange
from hermes.undo.entry import Manifest
from hermes.undo.intent import ScriptEffects
from hermes.undo.observer import WriteObserver


class ChangeReceipt(Value):
    """What a call did to files. `notes` is what undo will not be able to restore."""

    call_id: int = 0
    changes: tuple[FileChange, ...] = ()
    notes: tuple[str, ...] = ()


class OpenCall:
    def __init__(
        self, call_id: int, body: CallBody, intent: ScriptEffects, *, kind: CallKind
    ) -> None:
        self.call_id = call_id
        self.body = body
        self.intent = intent
        self.kind: CallKind = kind
        self.before: Manifest = {}
        self.gaps: dict[str, str] = {}
        self.others: frozenset[int] = frozenset()
        self.process = ""
        self.observer: WriteObserver | None = None

    def is_folder(self, path: str) -> bool:
        """As far as known: an unscanned path may be a folder."""
        entry = self.before.get(path)
        return entry is None or entry.is_folder


def merge_changes(body: CallBody, fresh: tuple[FileChange, ...]) -> CallBody:
    changes = {each.name: each for each in body.changes}
    for each in fresh:
        old = changes.get(each.name)
        if old is not None:
            each = FileChange(
                *(each.name, old.before, each.after, old.sure and each.sure, each.source),
                *(0, old.lost),
            )
        changes[each.name] = each
    return CallBody(
        tuple(changes.values()), body.notes, body.taken, body.names, body.spots, body.guards
    )
