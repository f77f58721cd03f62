"""A session as it can be played again: its records, its tapes, and what lay beside them."""

from __future__ import annotations

import msgspec

from hermes.codec.values import Value
from hermes.core.events import DurableEvent
from hermes.journal.body_templates import event_of
from hermes.providers.recorded.frames import TapeRun
from hermes.providers.recorded.tape import TapedRun


class RecordedLine(Value):
    """A record. `body` is its event in JSON, byte for byte; `hash` is empty when a secret was
    masked in it or in a record before it."""

    n: int
    at: float
    kind: str
    version: int
    body: msgspec.Raw
    turn_id: str = ""
    hash: str = ""

    @property
    def event(self) -> DurableEvent:
        return event_of(self.kind, self.version, bytes(self.body))


class Recording(Value):
    """`shared` is how many records a fork has from its parents: they are where it begins.
    `kept` are the whole texts of results that were put aside, by their paths. `now` is what the
    settings are here, for the parts of a session that no tape tells of. `masked` counts the
    secret values that were taken out."""

    session_id: str
    version: str
    lines: tuple[RecordedLine, ...]
    now: TapeRun
    shared: int = 0
    tapes: tuple[TapedRun, ...] = ()
    kept: dict[str, str] = {}
    masked: int = 0
