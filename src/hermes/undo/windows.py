"""A call in progress, and its result."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.undo.calls import Body, CallKind, Change
from hermes.undo.entry import Manifest
from hermes.undo.intent import Intent
from hermes.undo.observer import Observer


class Receipt(Value):
    """What a call did to files. `notes` is what undo will not be able to restore."""

    call_id: int = 0
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


class Window:
    def __init__(self, call_id: int, body: Body, intent: Intent, *, kind: CallKind) -> None:
        self.call_id = call_id
        self.body = body
        self.intent = intent
        self.kind: CallKind = kind
        self.before: Manifest = {}
        self.gaps: dict[str, str] = {}
        self.others: frozenset[int] = frozenset()
        self.process = ""
        self.observer: Observer | None = None

    def is_folder(self, path: str) -> bool:
        """As far as known: an unscanned path may be a folder."""
        entry = self.before.get(path)
        return entry is None or entry.is_folder


def merged(body: Body, fresh: tuple[Change, ...]) -> Body:
    changes = {each.name: each for each in body.changes}
    for each in fresh:
        old = changes.get(each.name)
        if old is not None:
            each = Change(
                *(each.name, old.before, each.after, old.sure and each.sure, each.source),
                *(0, old.lost),
            )
        changes[each.name] = each
    return Body(
        tuple(changes.values()), body.notes, body.taken, body.names, body.spots, body.guards
    )
