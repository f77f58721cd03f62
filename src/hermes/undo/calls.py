"""Records what calls did to files: every change with the state before and after."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from hermes.codec.values import Value
from hermes.undo.entry import PathEntry
from hermes.undo.script_effects import ScriptEffects
from hermes.undo.store import CheckpointStore, path_text

CallKind = Literal["write", "delete", "command", "background", "undo"]


class FileChange(msgspec.Struct, frozen=True, array_like=True):
    """The change of one path. None means that nothing was there."""

    name: bytes
    before: PathEntry | None
    after: PathEntry | None
    # Whether this call certainly made the change, not another process at the same time.
    sure: bool = True
    # The path before a rename.
    source: bytes = b""
    # In an undo, the oldest call whose change of this path it undid.
    back: int = 0
    # Why the state before cannot be restored.
    lost: str = ""
    # Whether it is a new folder whose content was not scanned.
    unseen: bool = False

    @property
    def path(self) -> str:
        return os.fsdecode(self.name)

    @property
    def kind(self) -> Literal["created", "changed", "deleted", "renamed"]:
        if self.before is None:
            return "renamed" if self.source else "created"
        return "deleted" if self.after is None else "changed"

    @property
    def mode_only(self) -> bool:
        old, new = self.before, self.after
        if old is None or new is None or old.kind != new.kind:
            return False
        return old.is_folder or (old.size, old.modified) == (new.size, new.modified)


class CallBody(msgspec.Struct, frozen=True, array_like=True):
    """The part of a call that is not queried."""

    changes: tuple[FileChange, ...] = ()
    # What is not covered, one sentence each.
    notes: tuple[str, ...] = ()
    # The calls that an undo reverted.
    taken: tuple[int, ...] = ()
    # Paths outside the project that the call may change, and those that it may create.
    names: tuple[bytes, ...] = ()
    spots: tuple[bytes, ...] = ()
    # Files with a second link in the store: path and token.
    guards: tuple[tuple[bytes, bytes], ...] = ()
    # By the clock of the file systems, in nanoseconds.
    ended: int = 0
    # What the text of a background process says about its effects.
    intent: ScriptEffects | None = None


class RecordedCall(Value):
    """A tool call or undo that changed files."""

    session: str
    turn: str
    root: str
    at: float
    kind: CallKind
    description: str
    id: int = 0  # 0 until the call is stored
    open: bool = False  # whether its end is not recorded yet
    process: str = ""
    manifest: bytes = b""
    body: CallBody = CallBody()

    @property
    def changes(self) -> tuple[FileChange, ...]:
        return self.body.changes

    @property
    def group(self) -> tuple[str, str, str]:
        """Calls of one turn form a group; so does each undo, which has a turn of its own."""
        return self.root, self.session, self.turn or f"#{self.id}"


COLUMNS = (
    *("id", "session", "turn", "root", "at", "kind", "words", "state", "process"),
    *("manifest", "body"),
)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(CallBody)


class CallLog:
    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    def begin(self, call: RecordedCall) -> int:
        """Store a call that begins now, and return its id."""
        root, description = path_text(call.root), path_text(call.description)
        row = (
            *(call.session, call.turn, root, call.at, call.kind, description, "open", ""),
            *(call.manifest or None, _encoder.encode(call.body)),
        )
        query = f"INSERT INTO calls({', '.join(COLUMNS[1:])}) VALUES(?,?,?,?,?,?,?,?,?,?)"
        with self._store.writing() as db:
            return int(db.execute(query, row).lastrowid or 0)

    def end(self, call_id: int, body: CallBody) -> None:
        with self._store.writing() as db:
            db.execute(
                "UPDATE calls SET state = 'done', manifest = NULL, body = ? WHERE id = ?",
                (_encoder.encode(body), call_id),
            )

    def update(self, call_id: int, body: CallBody, *, process: str = "") -> None:
        with self._store.writing() as db:
            db.execute(
                "UPDATE calls SET body = ?, process = MAX(process, ?) WHERE id = ?",
                (_encoder.encode(body), process, call_id),
            )

    def drop(self, call_ids: Iterable[int]) -> None:
        with self._store.writing() as db:
            db.executemany("DELETE FROM calls WHERE id = ?", [(each,) for each in call_ids])

    def of_session(self, session: str) -> list[RecordedCall]:
        """Return the calls of a session, oldest first."""
        return self._select("WHERE session = ? ORDER BY id", (session,))

    def left_open(self, session: str) -> list[RecordedCall]:
        return self._select("WHERE session = ? AND state = 'open' ORDER BY id", (session,))

    def since(self, call_id: int, *, but: str = "") -> list[RecordedCall]:
        """Return what sessions did after this call, except the session `but`."""
        return self._select("WHERE id > ? AND session != ? ORDER BY id", (call_id, but))

    def all(self) -> list[RecordedCall]:
        return self._select("ORDER BY id")

    def sessions_of(self, folder: str) -> list[str]:
        """Return the sessions that changed something in a project that contains this folder, the
        last one first."""
        with self._store.reading() as db:
            rows = db.execute("SELECT root, session FROM calls ORDER BY id DESC").fetchall()
        inside = (
            str(session)
            for root, session in rows
            if folder == root or folder.startswith(root.rstrip("/") + "/")
        )
        return list(dict.fromkeys(inside))

    def _select(self, where: str, values: Sequence[object] = ()) -> list[RecordedCall]:
        query = f"SELECT {', '.join(COLUMNS)} FROM calls {where}"
        with self._store.reading() as db:
            rows = [dict(zip(COLUMNS, row, strict=True)) for row in db.execute(query, values)]
        return [
            RecordedCall(
                description=row.pop("words"),
                open=row.pop("state") == "open",
                manifest=row.pop("manifest") or b"",
                body=_decoder.decode(row.pop("body")),
                **row,
            )
            for row in rows
        ]
