"""Stores what a call may destroy before it begins, and records what it did when it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from hermes.codec.file_lock import FileLock
from hermes.core.world import World
from hermes.undo.attribution import (
    OpenCall,
    attribute_changes,
    compare,
    list_pids,
    merge_changes,
    with_losses,
)
from hermes.undo.calls import CallBody, CallKind, CallLog, FileChange, RecordedCall
from hermes.undo.capture import ContentCapture, link_before_removal, link_large_files, release_links
from hermes.undo.entry import Manifest, read_entry
from hermes.undo.observer import WriteObserver
from hermes.undo.retention import prune, prune_if_due
from hermes.undo.scanner import (
    TreeScanner,
    UndoLimits,
    inside,
    is_scannable,
    missing_folders,
    reason_not_stored,
)
from hermes.undo.script_effects import ScriptEffects
from hermes.undo.store import CheckpointStore, lock_session

Where = Callable[[], tuple[str, str]]
# Changes and notes.
Recorded = tuple[tuple[FileChange, ...], tuple[str, ...]]


class ChangeRecorder:
    """Records the file changes of one session in one project; not thread-safe. `where` returns the
    session and the turn; `now_ns` is the clock of the file systems. Every `prune_hours`, if not 0,
    old checkpoints are removed when the session closes."""

    def __init__(
        self,
        store: CheckpointStore,
        root: str,
        *,
        where: Where,
        world: World,
        limits: UndoLimits,
        prune_hours: float = 0,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.store = store
        self.calls = CallLog(store)
        self.root = root
        self.limits = limits
        self.background: list[OpenCall] = []
        self._where = where
        self._world = world
        self._prune_hours = prune_hours
        self._now_ns = now_ns
        self._known: Manifest | None = None
        self._saved: Manifest | None = None
        self._manifest = b""
        self._large: set[str] = set()
        self._unkept: set[str] = set()
        self._generation = 0
        self._session_lock: FileLock | None = None

    # One path: the file tools

    def begin_path(self, kind: CallKind, description: str, path: str) -> OpenCall:
        self._start()
        if kind == "write":
            # A write follows a symbolic link, so the target is stored.
            path = os.path.realpath(path)
        gaps: dict[str, str] = {}
        guards: tuple[tuple[bytes, bytes], ...] = ()
        with self.store.writing():
            entry = read_entry(path)
            if entry is not None and (second := link_before_removal(self.store, path, entry)):
                guards = ((os.fsencode(path), second),)
                entry = read_entry(path)
            elif entry is not None:
                done = self._capture().capture_all({path: entry}, is_named=lambda _: True)
                entry = done.entries.get(path, entry)
                gaps = done.gaps
            changes = [FileChange(os.fsencode(each), None, None) for each in missing_folders(path)]
            changes.append(FileChange(os.fsencode(path), entry, entry))
            body = CallBody(
                changes=with_losses(changes, gaps), notes=tuple(gaps.values()), guards=guards
            )
            call_id = self._begin(kind, description, body)
        self._world.kill_point("undo.begun")
        return OpenCall(call_id, kind, body, ScriptEffects(complete=True))

    def end(self, open_call: OpenCall) -> None:
        """Record what a call did. A call without any effect leaves no trace."""
        is_path = open_call.kind in ("write", "delete")
        changes, notes = self._end_path(open_call) if is_path else self._end_command(open_call)
        self._world.kill_point("undo.ending")
        if changes or notes:
            body = CallBody(changes=changes, notes=notes, ended=self._now_ns())
            self.calls.end(open_call.call_id, body)
        else:
            self.calls.drop((open_call.call_id,))

    def _end_path(self, open_call: OpenCall) -> Recorded:
        now = self._now_ns()
        before = {each.path: each.before for each in open_call.body.changes if each.before}
        before.update(release_links(self.store, open_call.body.guards, before))
        after = {
            each.path: entry
            for each in open_call.body.changes
            if (entry := read_entry(each.path, now)) is not None
        }
        losses = {each.path: each.lost for each in open_call.body.changes if each.lost}
        changes = with_losses(compare(before, after), losses)
        return changes, open_call.body.notes

    # Whole trees: commands

    def begin_command(
        self, kind: CallKind, description: str, cwd: str, intent: ScriptEffects
    ) -> OpenCall:
        self._start()
        others = list_pids() - {os.getpid()}
        observer: WriteObserver | None = None
        named = set(intent.names)
        if kind == "command" and not (
            intent.complete and all(touch.path in named for touch in intent.touches)
        ):
            # The text of the script does not name every path that it changes.
            observer = WriteObserver(others)
            observer.start()
        try:
            open_call = self._open_command(kind, description, cwd, intent, observer)
        except BaseException:
            if observer is not None:
                observer.stop()
            raise
        open_call.others, open_call.observer = others, observer
        self._world.kill_point("undo.begun")
        return open_call

    def _open_command(
        self,
        kind: CallKind,
        description: str,
        cwd: str,
        intent: ScriptEffects,
        observer: WriteObserver | None,
    ) -> OpenCall:
        names, spots = self._outside(intent, cwd)
        # Everything that happens in a folder after its scan is observed.
        found = self._scan(names, spots, intent.names, observer.watch if observer else None)
        if self.root in found.gaps:
            names += [name for name in intent.names if inside(name, self.root)]
        self._record_background(found.entries)
        with self.store.writing():
            # One transaction: no content is removed before something refers to it.
            before, gaps = self._store_new(found, intent.names)
            guards = link_large_files(self.store, before, gaps)
            before.update({path: entry for path, entry, _ in guards})
            body = CallBody(
                names=tuple(os.fsencode(each) for each in names),
                spots=tuple(os.fsencode(each) for each in spots),
                guards=tuple((os.fsencode(path), token) for path, _, token in guards),
                intent=intent if kind == "background" else None,
            )
            if before != self._saved or not self.store.has_manifest(self._manifest):
                now = self._world.clock.now()
                self._manifest = self.store.save_manifest(self.root, before, now)
                self._saved = dict(before)
            call_id = self._begin(kind, description, body, self._manifest)
        return OpenCall(call_id, kind, body, intent, before, gaps)

    def _end_command(self, open_call: OpenCall) -> Recorded:
        open_call.before.update(release_links(self.store, open_call.body.guards, open_call.before))
        self._known = open_call.before
        found = self.scan_again(open_call)
        theirs = open_call.observer.stop() if open_call.observer else frozenset()
        changes = compare(open_call.before, found.entries)
        # Other sessions record themselves what they did at the same time.
        recorded = {
            (change.name, change.after)
            for call in self.calls.since(open_call.call_id, but=self._where()[0])
            for change in call.changes
        }
        changes = [
            each
            for each in attribute_changes(open_call, changes, theirs)
            if (each.name, each.after) not in recorded
        ]
        if self.background:
            found.entries, _ = self._store_new(found, ())
            for other in self.background:
                other.before = found.entries
        # Uncovered folders that no longer exist.
        notes = tuple(
            why
            for path, why in open_call.gaps.items()
            if path not in found.gaps
            and not os.path.lexists(path)
            # An unscanned path may be a folder.
            and ((entry := open_call.before.get(path)) is None or entry.is_folder)
        )
        return with_losses(changes, open_call.gaps, found.large), notes

    def mark_background(self, open_call: OpenCall, process_id: str) -> None:
        """From now on, attribute unexplained changes to this process."""
        open_call.process = process_id
        self.calls.update(open_call.call_id, open_call.body, process=process_id)
        open_call.before.update(release_links(self.store, open_call.body.guards, open_call.before))
        self.background.append(open_call)

    def sync(self, running: frozenset[str]) -> None:
        """Record what background processes have done so far, and end those that have stopped."""
        if not self.background:
            return
        names = [name for each in self.background for name in _places(each.body)[0]]
        found = self._scan(names, [], ())
        self._record_background(found.entries)
        for open_call in [each for each in self.background if each.process not in running]:
            self.calls.end(open_call.call_id, open_call.body)
            self.background.remove(open_call)

    def find_gaps(self, intent: ScriptEffects, cwd: str) -> dict[str, str]:
        """Return which files that a command may change are not covered by undo. Nothing is
        stored."""
        names, spots = self._outside(intent, cwd)
        found = self._scan(names, spots, intent.names)
        gaps = dict(found.gaps)
        for path, entry in found.entries.items():
            named = any(inside(path, name) for name in intent.names)
            if not entry.token and (
                why := reason_not_stored(path, entry, self.limits, named=named)
            ):
                gaps[path] = why
        return gaps

    def close(self) -> None:
        for open_call in self.background:
            self.calls.update(open_call.call_id, open_call.body)
        if self._session_lock is not None:
            if self._prune_hours:
                now = self._world.clock.now()
                prune_if_due(self.store, self.limits, now, self._prune_hours)
            self._session_lock.close()
            self._session_lock = None
        self.store.close()

    def _begin(
        self, kind: CallKind, description: str, body: CallBody, manifest: bytes = b""
    ) -> int:
        session, turn = self._where()
        call = RecordedCall(
            session=session,
            turn=turn,
            root=self.root,
            at=self._world.clock.now(),
            kind=kind,
            description=description,
            manifest=manifest,
            body=body,
        )
        return self.calls.begin(call)

    def _start(self) -> None:
        """Lock the session before the first call, and end what a dead Hermes left open."""
        if self._session_lock is not None:
            return
        session = self._where()[0]
        self._session_lock = lock_session(self.store, session)
        if self._session_lock is not None:
            left = self.calls.left_open(session)
            if left:
                from hermes.undo.interrupted_calls import end_interrupted_call  # rarely needed

                for call in left:
                    end_interrupted_call(self, call)

    def _outside(self, intent: ScriptEffects, cwd: str) -> tuple[list[str], list[str]]:
        """Return paths to scan outside the project, and folders that do not exist yet."""
        names = [name for name in intent.names if not inside(name, self.root)]
        if not inside(cwd, self.root) and cwd not in self.limits.untouched:
            names.append(cwd)
        names = [name for name in names if is_scannable(name)]
        spots = [missing for name in names for missing in missing_folders(name)]
        return names, spots

    def scan_again(self, open_call: OpenCall) -> TreeScanner:
        """Scan everything that was scanned when the call began."""
        return self._scan(*_places(open_call.body), open_call.intent.names)

    def _scan(
        self,
        names: Iterable[str],
        spots: Iterable[str],
        named: Iterable[str],
        entering: Callable[[str], None] | None = None,
    ) -> TreeScanner:
        scanner = TreeScanner(
            self.limits,
            self._known_entries(),
            now_ns=self._now_ns(),
            names=named,
            known_large=self._large,
            entering=entering,
        )
        scanner.scan_tree(self.root)
        for name in names:
            scanner.scan_named(name)
        for spot in spots:
            scanner.scan_spot(spot)
        # Where the project is too large to scan, named paths in it still are scanned.
        if self.root in scanner.gaps:
            for name in named:
                scanner.scan_named(name, again=True)
        self._large |= scanner.large
        return scanner

    def _known_entries(self) -> Manifest:
        generation = self.store.generation()
        if self._known is None:
            self._known = self.store.newest_manifest(self.root) or {}
            self._unkept = {p for p, e in self._known.items() if e.is_file and not e.token}
            self._generation = -1
        if generation != self._generation:
            # Another process removed contents, so known entries may no longer be stored.
            held = self.store.holds([e.token for e in self._known.values() if e.token])
            self._known = {
                path: entry
                for path, entry in self._known.items()
                if not entry.token or entry.token in held
            }
            self._generation = generation
        return self._known

    def _store_new(
        self, found: TreeScanner, names: Iterable[str]
    ) -> tuple[Manifest, dict[str, str]]:
        named = tuple(names)
        wanted = {path: found.entries[path] for path in found.new if path in found.entries}
        for path in self._unkept:
            entry = found.entries.get(path)
            if entry is not None and not entry.token:
                wanted[path] = entry
        gaps = dict(found.gaps)
        if wanted:
            done = self._capture().capture_all(
                wanted, is_named=lambda path: any(inside(path, name) for name in named)
            )
            gaps |= done.gaps
            found.entries.update(done.entries)
            for path in done.gone:
                del found.entries[path]
            self._unkept = {path for path in done.gaps if path in found.entries}
        self._known = found.entries
        return found.entries, gaps

    def _capture(self) -> ContentCapture:
        return ContentCapture(self.store, self.limits, self._room, self._now_ns)

    def _room(self, needed: int) -> int:
        most = self.limits.max_total_bytes
        if self.store.total() + needed > most:
            prune(self.store, self.limits, self._world.clock.now(), needed=needed)
        return max(0, most - self.store.total())

    def _record_background(self, entries: Manifest) -> None:
        """Record changes since the last scan while background processes run."""
        for open_call in self.background[-1:]:
            fresh = attribute_changes(open_call, compare(open_call.before, entries))
            if not open_call.intent.complete:
                # They cannot be told from edits of the user.
                fresh = [replace(change, sure=False) for change in fresh]
            if fresh:
                open_call.body = merge_changes(open_call.body, with_losses(fresh, open_call.gaps))
                self.calls.update(open_call.call_id, open_call.body)
        for open_call in self.background:
            open_call.before = entries


def _places(body: CallBody) -> tuple[list[str], list[str]]:
    return [os.fsdecode(each) for each in body.names], [os.fsdecode(each) for each in body.spots]
