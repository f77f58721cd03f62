"""The checkpoints of sessions for users: list, preview, and go back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from hermes.codec.values import Value, replace
from hermes.core.errors import NotFound, UsageError
from hermes.core.world import World
from hermes.undo import retention
from hermes.undo.calls import CallLog, RecordedCall
from hermes.undo.change_recorder import ChangeRecorder
from hermes.undo.interrupted_calls import end_interrupted_call
from hermes.undo.plan import RestorePlan, plan_restore, unified_diff
from hermes.undo.restore import Restorer, RestoreResult
from hermes.undo.scanner import UndoLimits
from hermes.undo.store import CheckpointStore, lock_session

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
    total_bytes: int = 0
    contents: int = 0
    sessions: int = 0
    checkpoints: int = 0
    projects: tuple[str, ...] = ()
    oldest_at: float | None = None
    newest_at: float | None = None


class CheckpointHistory:
    """Lists checkpoints and goes back to them. All methods block, so call them in a thread."""

    def __init__(self, store: CheckpointStore, *, world: World, limits: UndoLimits) -> None:
        self._store = store
        self._calls = CallLog(store)
        self._world = world
        self._limits = limits

    def session_of(self, folder: str) -> str:
        """Return the session that last changed something here; raise NotFound."""
        found = self._calls.sessions_of(folder) if self._store.exists else []
        if not found:
            raise NotFound(f"No session changed files in {folder}.")
        return found[0]

    def other_sessions(self, folder: str, session: str) -> tuple[Checkpoint, ...]:
        """Return the newest turn that is not undone of each other session that changed files
        here, the last session first."""
        if not self._store.exists:
            return ()
        found = []
        for other in self._calls.sessions_of(folder):
            turns = () if other == session else self.checkpoints(other)
            found += [turn for turn in turns if turn.kind == "turn" and not turn.undone][:1]
        return tuple(found)

    def checkpoints(self, session: str) -> tuple[Checkpoint, ...]:
        """Return all checkpoints, newest first."""
        if not self._store.exists:
            return ()
        calls = [call for call in self._calls.of_session(session) if call.changes]
        undone = _find_undone(calls)
        groups = [list(group) for _, group in groupby(calls, key=lambda call: call.group)]
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
        """Plan an undo: to the state before a checkpoint, before a turn, or, if neither is given,
        before the last turn that is not undone yet. `path` limits it to a file or a folder.
        NotFound, UsageError."""
        self._end_open_calls(session)
        listed = self.checkpoints(session)
        chosen = _choose_checkpoint(listed, number, turn)
        calls = self._calls.of_session(session)
        # All newer turns that are not undone yet. Newer undos are skipped; only a chosen undo is
        # itself undone.
        taken = [
            call
            for each in listed[: chosen.number]
            if each is chosen or (each.kind == "turn" and not each.undone)
            for call in each.calls
        ]
        found = plan_restore(calls, taken, overwrite=overwrite or bool(path), only=path)
        if path and not found.steps and not found.kept:
            raise NotFound(f"{path} has not changed since that checkpoint.")
        return found

    def restore(self, plan: RestorePlan, *, session: str, whole: bool = True) -> RestoreResult:
        """Execute a plan. A plan that was limited to a path is not `whole`: its turns do not count
        as undone."""
        calls = {call.id: call for call in self._calls.of_session(session)}
        first = calls.get(min(plan.taken, default=0))
        if first is None:
            raise NotFound(NOTHING)
        if not whole:
            plan = replace(plan, notes=(), taken=(), turns=())
        restorer = Restorer(self._store, self._limits, self._world, root=first.root)
        call = RecordedCall(
            session=session,
            turn=self._world.new_id("undo"),
            root=first.root,
            at=self._world.clock.now(),
            kind="undo",
            description=f"undo {first.description}",
        )
        return restorer.apply(plan, call)

    def diff(self, plan: RestorePlan, root: str) -> str:
        return unified_diff(self._store, plan, root)

    def status(self) -> StoreStatus:
        folder = str(self._store.folder)
        if not self._store.exists:
            return StoreStatus(folder=folder)
        with self._store.reading() as db:
            query = "SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM objects)"
            contents = int(db.execute(query).fetchone()[0])
        calls = self._calls.all()
        return StoreStatus(
            folder=folder,
            total_bytes=self._store.total(),
            contents=contents,
            sessions=len({call.session for call in calls}),
            checkpoints=len({call.group for call in calls}),
            projects=tuple(sorted({call.root for call in calls})),
            oldest_at=calls[0].at if calls else None,
            newest_at=calls[-1].at if calls else None,
        )

    def prune(self) -> retention.CheckpointPruneResult:
        return retention.prune(self._store, self._limits, self._world.clock.now())

    def clear(self) -> retention.CheckpointPruneResult:
        return retention.clear(self._store)

    def _end_open_calls(self, session: str) -> None:
        """End calls that a dead Hermes left open; raise while a call really runs."""
        if not self._store.exists:
            raise NotFound(NOTHING)
        left = self._calls.left_open(session)
        if not left:
            return
        lock = lock_session(self._store, session)
        if lock is None:
            if any(call.kind != "background" for call in left):
                raise UsageError("A command of this session is running; wait until it ends.")
            # The session itself records what its background processes do.
            return
        try:
            for call in left:
                recorder = ChangeRecorder(
                    self._store,
                    call.root,
                    where=lambda: (session, ""),
                    world=self._world,
                    limits=self._limits,
                )
                end_interrupted_call(recorder, call)
        finally:
            lock.close()


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
    # By path, whether it existed before the first call and after the last one.
    existed: dict[bytes, tuple[bool, bool]] = {}
    for call in calls:
        for change in call.changes:
            before, _ = existed.get(change.name, (change.before is not None, False))
            existed[change.name] = before, change.after is not None
    counts = Counter(existed.values())
    first = calls[0]
    more = f" (+{len(calls) - 1} more)" if len(calls) > 1 else ""
    return Checkpoint(
        number=number,
        turn=first.turn,
        at=first.at,
        kind="undo" if first.kind == "undo" else "turn",
        words=first.description + more,
        created=counts[False, True],
        changed=counts[True, True],
        deleted=counts[True, False],
        undone=all(call.id in undone for call in calls),
        calls=tuple(call.id for call in calls),
        session=first.session,
        root=first.root,
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
