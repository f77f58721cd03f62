"""The checkpoints of sessions for users: list, preview, and go back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from hermes.codec.values import Value
from hermes.core.errors import NotFound, UsageError
from hermes.core.world import World
from hermes.undo import retention as upkeep
from hermes.undo.calls import CallBody, CallLog, FileChange, RecordedCall
from hermes.undo.contents import present_token
from hermes.undo.coverage import Coverage, Retention, inside
from hermes.undo.entry import PathEntry, read_entry
from hermes.undo.plan import RestorePlan, RestorePlanner
from hermes.undo.recorder import UndoRecorder, end_dead_call
from hermes.undo.restore import Restorer, RestoreResult
from hermes.undo.store import CheckpointStore, lock_session


def end_undo(store: CheckpointStore, call: RecordedCall) -> None:
    """What it has restored counts as restored, the rest as never begun; files that it had moved
    aside go back."""
    for name, aside in call.body.guards:
        with contextlib.suppress(OSError):
            _move_back(call, os.fsdecode(name), os.fsdecode(aside))
    done = [each for change in call.changes if (each := _current_change(change)) is not None]
    CallLog(store).end(call.id, CallBody(changes=tuple(done)))


def _move_back(call: RecordedCall, path: str, aside: str) -> None:
    """Move it to its present name, or to the intended one."""
    found = read_entry(aside)
    if found is None:
        return
    wanted = [
        change.path
        for change in call.changes
        if change.after is not None
        and (change.after.inode, change.after.size) == (found.inode, found.size)
    ]
    for name in (path, *wanted):
        if not os.path.lexists(name):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(aside).rename(name)
            return


def _current_change(change: FileChange) -> FileChange | None:
    """Return the intended change as it is now. A file in neither state counts as changed, so that
    the next undo restores it."""
    wanted, now = change.after, read_entry(change.path)
    if _matches(change.path, change.before, now):
        return None
    back = change.back if _matches(change.path, wanted, now) else 0
    return FileChange(change.name, change.before, now, back=back)


def _matches(path: str, one: PathEntry | None, now: PathEntry | None) -> bool:
    if one is None or now is None:
        return one is now
    if one.mode != now.mode:
        return False
    if not one.is_file:
        return one.target == now.target
    if (one.changed, one.size) == (now.changed, now.size):
        return True
    if (one.modified, one.size) != (now.modified, now.size):
        return False
    return bool(one.token) and present_token(path) == one.token


NOTHING = "There is nothing to undo."


class Checkpoint(Value):
    """One turn that changed files, or one undo. Number 1 is the newest; going back to a number
    undoes it and all newer ones."""

    number: int
    turn: str
    at: float
    kind: str
    words: str
    created: int
    changed: int
    deleted: int
    undone: bool
    calls: tuple[int, ...]
    session: str = ""
    root: str = ""


class StoreStatus(Value):
    folder: str
    total_bytes: int
    contents: int
    sessions: int
    checkpoints: int
    projects: tuple[str, ...]
    oldest_at: float | None
    newest_at: float | None


class CheckpointHistory:
    """All methods block, so call them in a thread."""

    def __init__(
        self, store: CheckpointStore, *, world: World, cover: Coverage, retention: Retention
    ) -> None:
        self._store = store
        self._calls = CallLog(store)
        self._world = world
        self._cover = cover
        self._retention = retention

    def session_of(self, folder: str) -> str:
        """Return the session that last changed something here; NotFound."""
        found = self._calls.newest_session(folder) if self._store.exists else ""
        if not found:
            raise NotFound(f"No session changed files in {folder}.")
        return found

    def checkpoints(self, session: str) -> tuple[Checkpoint, ...]:
        """Newest first."""
        if not self._store.exists:
            return ()
        calls = [call for call in self._calls.of_session(session) if call.changes]
        undone = _find_undone(calls)
        groups = [list(group) for _, group in groupby(calls, key=_group)]
        return tuple(
            _checkpoint(number, group, undone) for number, group in enumerate(reversed(groups), 1)
        )

    def plan(
        self,
        session: str,
        *,
        number: int = 0,
        turn: str = "",
        path: str = "",
        overwrite: bool = False,
    ) -> RestorePlan:
        """Plan an undo: to before a checkpoint number, to before a turn, or, without both, to
        before the last turn that is not undone yet. `path` limits it to a file or a folder.
        NotFound, UsageError."""
        self._end_open_calls(session)
        listed = self.checkpoints(session)
        chosen = _choose_checkpoint(listed, number, turn)
        only = (lambda each: inside(each, path)) if path else None
        calls = self._calls.of_session(session)
        taken = _calls_to_undo(listed, chosen)
        found = RestorePlanner(calls, taken, overwrite=overwrite or bool(path), only=only).plan()
        if path and not found.steps and not found.kept:
            raise NotFound(f"Nothing has changed {path} since then.")
        return found

    def restore(self, plan: RestorePlan, *, session: str, whole: bool = True) -> RestoreResult:
        """Without `whole`, it was limited to a path, and the turns do not count as undone."""
        calls = {call.id: call for call in self._calls.of_session(session)}
        first = calls.get(min(plan.taken, default=0))
        if first is None:
            raise NotFound(NOTHING)
        if not whole:
            plan = RestorePlan(
                session=plan.session, steps=plan.steps, kept=plan.kept, lost=plan.lost
            )
        restorer = Restorer(self._store, self._cover, self._world, root=first.root)
        turn = self._world.new_id("undo")
        return restorer.apply(plan, session=session, turn=turn, words=f"undo {first.words}")

    def status(self) -> StoreStatus:
        calls = self._calls.all() if self._store.exists else []
        contents = 0
        if self._store.exists:
            with self._store.reading() as db:
                query = "SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM objects)"
                contents = int(db.execute(query).fetchone()[0])
        return StoreStatus(
            folder=str(self._store.folder),
            total_bytes=self._store.total() if self._store.exists else 0,
            contents=contents,
            sessions=len({call.session for call in calls}),
            checkpoints=len({_group(call) for call in calls}),
            projects=tuple(sorted({call.root for call in calls})),
            oldest_at=calls[0].at if calls else None,
            newest_at=calls[-1].at if calls else None,
        )

    def prune(self) -> upkeep.PruneResult:
        return upkeep.prune(self._store, self._retention, self._world.clock.now())

    def clear(self) -> upkeep.PruneResult:
        return upkeep.clear(self._store)

    def _end_open_calls(self, session: str) -> None:
        """End calls that a dead Hermes left open; raise while a call really runs."""
        if not self._store.exists:
            raise NotFound(NOTHING)
        left = [call for call in self._calls.left_open(session) if call.kind != "background"]
        if not left:
            return
        held = lock_session(self._store, session)
        if held is None:
            raise UsageError("A command of this session is running; wait until it ends.")
        try:
            for call in left:
                if call.kind == "undo":
                    end_undo(self._store, call)
                else:
                    end_dead_call(self._protection(call), call)
        finally:
            os.close(held)

    def _protection(self, call: RecordedCall) -> UndoRecorder:
        return UndoRecorder(
            self._store,
            call.root,
            where=lambda: (call.session, call.turn),
            world=self._world,
            cover=self._cover,
            retention=self._retention,
        )


def _group(call: RecordedCall) -> tuple[str, str, int]:
    """Calls of one turn form a group; so does each undo."""
    alone = call.id if call.kind == "undo" or not call.turn else 0
    return call.session, call.turn, alone


def _find_undone(calls: Iterable[RecordedCall]) -> set[int]:
    """Return the calls that are undone at present: an undo can itself be undone."""
    by_id = {}
    undone: set[int] = set()
    for call in calls:
        by_id[call.id] = call
        for taken in call.body.taken:
            undone.add(taken)
            inner = by_id.get(taken)
            if inner is not None and inner.kind == "undo":
                undone -= set(inner.body.taken)
    return undone


def _checkpoint(number: int, calls: list[RecordedCall], undone: set[int]) -> Checkpoint:
    first: dict[bytes, FileChange] = {}
    last: dict[bytes, FileChange] = {}
    for call in calls:
        for change in call.changes:
            first.setdefault(change.name, change)
            last[change.name] = change
    made = [n for n in first if first[n].before is None and last[n].after is not None]
    gone = [n for n in first if first[n].before is not None and last[n].after is None]
    both = [n for n in first if first[n].before is not None and last[n].after is not None]
    more = f" (+{len(calls) - 1} more)" if len(calls) > 1 else ""
    return Checkpoint(
        number=number,
        turn=calls[0].turn,
        at=calls[0].at,
        kind="undo" if calls[0].kind == "undo" else "turn",
        words=calls[0].words + more,
        created=len(made),
        changed=len(both),
        deleted=len(gone),
        undone=all(call.id in undone for call in calls),
        calls=tuple(call.id for call in calls),
        session=calls[0].session,
        root=calls[0].root,
    )


def _choose_checkpoint(listed: tuple[Checkpoint, ...], number: int, turn: str) -> Checkpoint:
    if number:
        if number > len(listed):
            raise UsageError(f"There are {len(listed)} checkpoints; {number} is not one of them.")
        return listed[number - 1]
    if turn:
        found = [each for each in listed if each.turn.startswith(turn)]
        if len({each.turn for each in found}) != 1:
            near = tuple(each.turn for each in listed[:5])
            raise NotFound(f"No turn {turn!r} changed files.", near)
        return found[-1]
    for each in listed:
        if each.kind == "turn" and not each.undone:
            return each
    raise NotFound(NOTHING)


def _calls_to_undo(listed: tuple[Checkpoint, ...], chosen: Checkpoint) -> list[int]:
    """Return the calls of the chosen checkpoint and of all newer turns that are not undone yet.
    Newer undos are skipped; only a chosen undo is itself undone."""
    return [
        call
        for each in listed[: chosen.number]
        if each is chosen or (each.kind == "turn" and not each.undone)
        for call in each.calls
    ]
