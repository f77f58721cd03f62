"""Stores what a call may destroy before it begins, and records what it did when it ends."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hermes.core.world import World
from hermes.undo.attribution import (
    ChangeReceipt,
    OpenCall,
    WriteObserver,
    WrittenFile,
    attribute_changes,
    compare,
    is_broad,
    list_pids,
    merge_changes,
    with_losses,
)
from hermes.undo.calls import CallBody, CallKind, CallLog, FileChange, RecordedCall
from hermes.undo.capture import ContentCapture, link_before_removal, link_large_files, release_links
from hermes.undo.coverage import Coverage, Retention, inside
from hermes.undo.entry import Manifest, read_entry
from hermes.undo.retention import free_space, prune_if_due
from hermes.undo.scanner import ScanResult, TreeScanner, reason_not_stored
from hermes.undo.script_effects import ScriptEffects
from hermes.undo.store import CheckpointStore, lock_session

Where = Callable[[], tuple[str, str]]
STOPPED = "Hermes was stopped while it ran."


class UndoRecorder:
    """For one session in one project; not thread-safe. `where` returns the session and the turn;
    `now_ns` is the clock of the file systems. Every `prune_hours`, if not 0, old checkpoints are
    removed when the session closes."""

    def __init__(
        self,
        store: CheckpointStore,
        root: str,
        *,
        where: Where,
        world: World,
        cover: Coverage,
        retention: Retention,
        prune_hours: float = 0,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.store = store
        self.calls = CallLog(store)
        self.root = root
        self.cover = cover
        self.background: list[OpenCall] = []
        self._where = where
        self._world = world
        self._retention = retention
        self._prune_hours = prune_hours
        self._now_ns = now_ns
        self._known: Manifest | None = None
        self._saved: Manifest | None = None
        self._manifest = b""
        self._large: set[str] = set()
        self._unkept: set[str] = set()
        self._generation = 0
        self._live: int | None = None

    # One path: the file tools

    def begin_path(self, kind: CallKind, words: str, path: str) -> OpenCall:
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
            changes = [FileChange(os.fsencode(each), None, None) for each in _missing_above(path)]
            changes.append(FileChange(os.fsencode(path), entry, entry))
            body = CallBody(
                changes=with_losses(changes, gaps), notes=tuple(gaps.values()), guards=guards
            )
            call_id = self._begin(kind, words, body)
        self._world.kill_point("undo.begun")
        return OpenCall(call_id, body, ScriptEffects(complete=True), kind=kind)

    def end_path(self, window: OpenCall) -> ChangeReceipt:
        now = self._now_ns()
        before = {each.path: each.before for each in window.body.changes if each.before}
        before.update(release_links(self.store, window.body.guards, before))
        after: Manifest = {}
        for each in window.body.changes:
            entry = read_entry(each.path, now)
            if entry is not None:
                after[each.path] = entry
        losses = {each.path: each.lost for each in window.body.changes if each.lost}
        changes = with_losses(compare(before, after), losses)
        return self._finish(window, changes, window.body.notes)

    # Whole trees: commands

    def begin_command(
        self, kind: CallKind, words: str, cwd: str, intent: ScriptEffects
    ) -> OpenCall:
        self._start()
        others = list_pids() - {os.getpid()}
        observer = _start_observer(others) if kind == "command" and is_broad(intent) else None
        try:
            window = self._open_window(kind, words, cwd, intent, observer)
        except BaseException:
            if observer is not None:
                observer.stop()
            raise
        window.others, window.observer = others, observer
        self._world.kill_point("undo.begun")
        return window

    def _open_window(
        self,
        kind: CallKind,
        words: str,
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
            )
            self._save(before)
            call_id = self._begin(kind, words, body, self._manifest)
        window = OpenCall(call_id, body, intent, kind=kind)
        window.before, window.gaps = before, gaps
        return window

    def end_command(self, window: OpenCall) -> ChangeReceipt:
        window.before.update(release_links(self.store, window.body.guards, window.before))
        self._known = window.before
        found = self._scan(*_places(window.body), window.intent.names)
        theirs = window.observer.stop() if window.observer else frozenset[WrittenFile]()
        changes = compare(window.before, found.entries)
        changes = self._drop_other_sessions(window, attribute_changes(window, changes, theirs))
        if self.background:
            found.entries, _ = self._store_new(found, ())
            for other in self.background:
                other.before = found.entries
        notes = _lost_folders(window, found)
        return self._finish(window, with_losses(changes, window.gaps, found.large), notes)

    def mark_background(self, window: OpenCall, process_id: str) -> None:
        """From now on, unexplained changes may come from this process."""
        window.process = process_id
        self.calls.update(window.call_id, window.body, process=process_id)
        window.before.update(release_links(self.store, window.body.guards, window.before))
        self.background.append(window)

    def sync(self, running: frozenset[str]) -> None:
        """Record what background processes have done so far, and end those that have stopped."""
        if not self.background:
            return
        names = [name for each in self.background for name in _places(each.body)[0]]
        found = self._scan(names, [], ())
        self._record_background(found.entries)
        for window in [each for each in self.background if each.process not in running]:
            self.calls.end(window.call_id, window.body)
            self.background.remove(window)

    def find_gaps(self, intent: ScriptEffects, cwd: str) -> dict[str, str]:
        """Return what a command would find uncovered, without storing anything."""
        names, spots = self._outside(intent, cwd)
        found = self._scan(names, spots, intent.names)
        gaps = dict(found.gaps)
        for path, entry in found.entries.items():
            named = any(inside(path, name) for name in intent.names)
            if not entry.token and (why := reason_not_stored(path, entry, self.cover, named=named)):
                gaps[path] = why
        return gaps

    def close(self) -> None:
        for window in self.background:
            self.calls.update(window.call_id, window.body)
        if self._prune_hours and self._live is not None:
            now = self._world.clock.now()
            prune_if_due(self.store, self._retention, now, self._prune_hours)
        if self._live is not None:
            os.close(self._live)
            self._live = None
        self.store.close()

    def _begin(self, kind: CallKind, words: str, body: CallBody, manifest: bytes = b"") -> int:
        session, turn = self._where()
        return self.calls.begin(
            session=session,
            turn=turn,
            root=self.root,
            at=self._world.clock.now(),
            kind=kind,
            words=words,
            manifest=manifest,
            body=body,
        )

    def _start(self) -> None:
        """Before the first call: lock the session, and end what a dead Hermes left open."""
        if self._live is not None:
            return
        session = self._where()[0]
        self._live = lock_session(self.store, session)
        if self._live is not None:
            for call in self.calls.left_open(session):
                end_dead_call(self, call)

    def _outside(self, intent: ScriptEffects, cwd: str) -> tuple[list[str], list[str]]:
        """Return paths to scan outside the project, and folders that do not exist yet."""
        names = [name for name in intent.names if not inside(name, self.root)]
        if not inside(cwd, self.root) and cwd not in self.cover.untouched:
            names.append(cwd)
        # A path through a link is scanned a second time as its target.
        names = [name for name in names if not _is_system_folder(name) and _is_real(name)]
        spots = [missing for name in names for missing in _missing_above(name)]
        return names, spots

    def _scan(
        self,
        names: Iterable[str],
        spots: Iterable[str],
        named: Iterable[str],
        entering: Callable[[str], None] | None = None,
    ) -> ScanResult:
        scanner = TreeScanner(
            self.cover,
            self._known_entries(),
            now_ns=self._now_ns(),
            names=named,
            large=self._large,
            entering=entering,
        )
        scanner.scan_tree(self.root)
        for name in names:
            scanner.scan_named(name)
        for spot in spots:
            scanner.scan_spot(spot)
        # Where the project is too large to scan, named paths in it still are scanned.
        if self.root in scanner.look.gaps:
            for name in named:
                scanner.scan_named(name, again=True)
        self._large |= scanner.look.large
        return scanner.look

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
        self, found: ScanResult, names: Iterable[str]
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
        return ContentCapture(self.store, self.cover, self._room, self._now_ns)

    def _room(self, needed: int) -> int:
        most = self.cover.max_total_bytes
        if self.store.total() + needed > most:
            free_space(self.store, self._retention, needed, self._world.clock.now())
        return max(0, most - self.store.total())

    def _save(self, manifest: Manifest) -> None:
        if manifest != self._saved or not self.store.has_manifest(self._manifest):
            self._manifest = self.store.save_manifest(self.root, manifest, self._world.clock.now())
            self._saved = dict(manifest)

    def _drop_other_sessions(self, window: OpenCall, changes: list[FileChange]) -> list[FileChange]:
        """Drop changes that other sessions made at the same time and recorded themselves."""
        theirs = {
            (change.name, change.after)
            for call in self.calls.since(window.call_id, but=self._where()[0])
            for change in call.changes
        }
        return [each for each in changes if (each.name, each.after) not in theirs]

    def _record_background(self, entries: Manifest) -> None:
        """Record changes since the last scan while background processes run."""
        for window in self.background[-1:]:
            fresh = attribute_changes(window, compare(window.before, entries))
            if not window.intent.complete:
                # They cannot be told from edits of the user.
                fresh = [FileChange(c.name, c.before, c.after, False, c.source) for c in fresh]
            if fresh:
                window.body = merge_changes(window.body, with_losses(fresh, window.gaps))
                self.calls.update(window.call_id, window.body)
        for window in self.background:
            window.before = entries

    def _finish(
        self, window: OpenCall, changes: tuple[FileChange, ...], notes: tuple[str, ...]
    ) -> ChangeReceipt:
        self._world.kill_point("undo.ending")
        if changes or notes:
            body = CallBody(changes=changes, notes=notes, ended=self._now_ns())
            self.calls.end(window.call_id, body)
        else:
            self.calls.drop((window.call_id,))
        return ChangeReceipt(call_id=window.call_id, changes=changes, notes=notes)


def end_dead_call(protection: UndoRecorder, call: RecordedCall) -> None:
    """End a call whose process died: every difference counts as its change."""
    window = OpenCall(call.id, call.body, ScriptEffects(), kind=call.kind)
    if call.kind in ("write", "delete"):
        protection.end_path(window)
    elif call.kind == "undo":
        protection.calls.end(call.id, call.body)
    else:
        window.before = protection.store.manifest(call.manifest) or {}
        window.body = CallBody(
            names=call.body.names, spots=call.body.spots, guards=call.body.guards
        )
        if not window.before:
            protection.calls.end(call.id, CallBody(changes=call.changes, notes=(STOPPED,)))
            return
        protection.end_command(window)


def _start_observer(others: frozenset[int]) -> WriteObserver | None:
    observer = WriteObserver(others)
    return observer if observer.start() else None


def _places(body: CallBody) -> tuple[list[str], list[str]]:
    return [os.fsdecode(each) for each in body.names], [os.fsdecode(each) for each in body.spots]


def _missing_above(path: str) -> list[str]:
    """Return the missing folders on the way to a path, outermost first."""
    return [str(each) for each in reversed(Path(path).parents) if not os.path.lexists(each)]


def _is_system_folder(path: str) -> bool:
    """Return whether the path is a folder of the system, or one for temporary files as a whole."""
    return path.count("/") < 2 or path.startswith(("/proc/", "/sys/", "/dev/"))


def _is_real(path: str) -> bool:
    folder = posixpath.dirname(path)
    return os.path.realpath(folder) == folder


def _lost_folders(window: OpenCall, found: ScanResult) -> tuple[str, ...]:
    """Return uncovered folders that no longer exist."""
    return tuple(
        why
        for path, why in window.gaps.items()
        if path not in found.gaps and window.is_folder(path) and not os.path.lexists(path)
    )
