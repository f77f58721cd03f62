"""Executes a restore plan in a way that can be undone and survives a crash."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.core.world import World
from hermes.undo.calls import CallBody, CallLog, FileChange, RecordedCall
from hermes.undo.capture import ContentCapture
from hermes.undo.entry import (
    MOVED,
    FileId,
    PathEntry,
    WrittenFile,
    open_file,
    read_entry,
    read_entry_without_links,
    stamp_token,
)
from hermes.undo.plan import KeptPath, RestorePlan, RestoreStep, has_state
from hermes.undo.scanner import UndoLimits
from hermes.undo.store import CheckpointStore


class WritableFolders:
    def __init__(self) -> None:
        self._modes: dict[str, tuple[int, int]] = {}

    def open(self, folder: str) -> None:
        """Make the folder writable, and let this process enter the folders above it."""
        for each in (*reversed(Path(folder).parents), Path(folder)):
            path = str(each)
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                needed = stat.S_IRWXU if path == folder else stat.S_IXUSR
                lacking = needed & ~found.st_mode
                own = found.st_uid == os.geteuid()
                if stat.S_ISDIR(found.st_mode) and lacking and own and path not in self._modes:
                    self._modes[path] = (found.st_ino, stat.S_IMODE(found.st_mode))
                    each.chmod(stat.S_IMODE(found.st_mode) | needed)

    def close(self) -> None:
        for path, (inode, mode) in sorted(self._modes.items(), reverse=True):
            with contextlib.suppress(OSError):
                # Another folder may be there by now, even with the same inode.
                found = os.lstat(path)
                if found.st_ino == inode and stat.S_ISDIR(found.st_mode):
                    Path(path).chmod(mode)
        self._modes.clear()


TEMPORARY = ".undo"
KEPT_FULL = "it has grown since the turn, or cannot be stored, so it is kept"


class RestoreResult(Value):
    """What was done to which path, what stayed, and what could not be restored."""

    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # A part failed that may succeed later; the turns still count as not undone.
    is_partial: bool = False


class Restorer:
    def __init__(
        self, store: CheckpointStore, limits: UndoLimits, world: World, *, root: str
    ) -> None:
        self._store = store
        self._calls = CallLog(store)
        self._limits = limits
        self._world = world
        self._root = root
        self._folders = WritableFolders()
        self._held: dict[WrittenFile, list[str]] = {}
        self._made: dict[WrittenFile, str] = {}
        self._now: dict[str, PathEntry] = {}
        self._kept: list[KeptPath] = []
        self._stuck: set[str] = set()
        self._lost: list[str] = []
        self._is_partial = False
        self._siblings: dict[FileId, list[str]] | None = None

    def apply(self, plan: RestorePlan, call: RecordedCall) -> RestoreResult:
        """Restore everything possible, record it as this call, and name the rest."""
        steps = list(plan.steps)
        aside = self._plan_waiting(steps)
        call_id = self._record_intention(steps, aside, call)
        self._world.kill_point("undo.restoring")
        try:
            for path, name in aside.items():
                entry = read_entry(path)
                with contextlib.suppress(OSError):
                    self._folders.open(str(Path(path).parent))
                    self._folders.open(str(Path(name).parent))
                    Path(path).rename(name)
                    if entry is not None:
                        self._held.setdefault(entry.written, []).append(name)
            for step in sorted(steps, key=lambda each: each.path, reverse=True):
                if step.now is not None and not _keeps_inode(step):
                    self._attempt(step, self._remove)
            for step in sorted(steps, key=lambda each: each.path):
                if step.target is not None:
                    self._attempt(step, self._restore_path)
                self._world.kill_point("undo.step")
        finally:
            for name in (name for names in self._held.values() for name in names):
                with contextlib.suppress(OSError):
                    Path(name).unlink()
            self._folders.close()
        for step in sorted(steps, key=lambda each: each.path, reverse=True):
            if step.target is not None and step.target.is_folder:
                restore_metadata(step.path, step.target)
        return self._finish(steps, plan, call_id)

    # Before anything happens

    def _record_intention(
        self, steps: list[RestoreStep], aside: dict[str, str], call: RecordedCall
    ) -> int:
        present = {step.path: step.now for step in steps if step.now is not None}
        with self._store.writing():
            capture = ContentCapture(self._store, self._limits, lambda _: 1 << 62, time.time_ns)
            self._now = present | capture.capture_all(present, is_named=lambda _: True).entries
            body = CallBody(
                changes=tuple(
                    FileChange(os.fsencode(s.path), self._now.get(s.path), s.target, back=s.back)
                    for s in steps
                ),
                guards=tuple((os.fsencode(a), os.fsencode(b)) for a, b in aside.items()),
            )
            return self._calls.begin(replace(call, body=body))

    def _plan_waiting(self, steps: list[RestoreStep]) -> dict[str, str]:
        """Return renamed files, and where they wait until their old names are free: in a folder
        that stays."""
        wanted = {s.target.written: s for s in steps if s.target is not None and s.target.is_file}
        going = {step.path for step in steps if step.now is not None and not _keeps_inode(step)}
        mark = self._world.new_id("undo")
        found: dict[str, str] = {}
        for step in steps:
            now = step.now
            other = wanted.get(now.written) if now is not None and now.is_file else None
            if now is None or other is None or other.target is None or other.path == step.path:
                continue
            if now.size == other.target.size:
                folder = next(p for p in Path(step.path).parents if str(p) not in going)
                found[step.path] = str(folder / f".hermes-{mark}-{len(found)}")
        return found

    # One path

    def _attempt(self, step: RestoreStep, work: Callable[[RestoreStep], None]) -> None:
        try:
            work(step)
        except NotFound as error:
            self._lost.append(f"{step.path}: {error}")
        except OSError as error:
            self._is_partial = True
            self._lost.append(f"{step.path} could not be restored: {error.strerror or error}.")

    def _remove(self, step: RestoreStep) -> None:
        now = read_entry_without_links(step.path)
        if now is None:
            return
        self._folders.open(str(Path(step.path).parent))
        if now.is_folder:
            try:
                self._folders.open(step.path)
                Path(step.path).rmdir()
            except OSError:
                moved = step.unseen and _is_untouched(step) and self._move_to_store(step, None)
                if not moved:
                    self._keep(step.path, "it is not empty")
        elif now.is_file and not self._now[step.path].token and not self._move_to_store(step, now):
            self._keep(step.path, KEPT_FULL)
        else:
            Path(step.path).unlink(missing_ok=True)

    def _keep(self, path: str, why: str) -> None:
        self._stuck.add(path)
        self._kept.append(KeptPath(path=path, why=why))

    def _move_to_store(self, step: RestoreStep, now: PathEntry | None) -> bool:
        """Move into the store what is too large to copy."""
        entry = now or self._now[step.path]
        token = stamp_token(MOVED, entry)
        try:
            Path(step.path).rename(self._store.object_path(token))
        except OSError:
            return False
        self._store.put_object(token, entry.weight)
        self._now[step.path] = replace(entry, token=token)
        return True

    def _restore_path(self, step: RestoreStep) -> None:
        target = step.target
        assert target is not None
        if step.path in self._stuck:
            return
        parent = str(Path(step.path).parent)
        if not os.path.lexists(parent):
            Path(parent).mkdir(parents=True)
        self._folders.open(parent)
        if target.token[:1] == MOVED:
            self._store.object_path(target.token).rename(step.path)
        elif target.is_folder:
            if not os.path.lexists(step.path):
                Path(step.path).mkdir(mode=0o700)
        elif target.is_link:
            Path(step.path).unlink(missing_ok=True)
            Path(step.path).symlink_to(os.fsdecode(target.target))
            with contextlib.suppress(OSError):
                times = (target.modified, target.modified)
                os.utime(step.path, ns=times, follow_symlinks=False)
        elif target.is_file:
            self._restore_file(step, target)
        elif stat.S_ISFIFO(target.mode):
            os.mkfifo(step.path)
            restore_metadata(step.path, target)
        else:
            raise NotFound("it was a device or a socket.")

    def _restore_file(self, step: RestoreStep, target: PathEntry) -> None:
        file = target.written
        present = read_entry_without_links(step.path)
        if self._held.get(file):
            Path(self._held[file].pop()).rename(step.path)
            self._made[file] = step.path
        elif present is not None and present.file_id == target.file_id:
            self._rewrite(step.path, target, present)
            self._made[file] = step.path
        elif sibling := self._sibling(step.path, target):
            Path(step.path).unlink(missing_ok=True)
            os.link(sibling, step.path)
        else:
            self._create(step, target)
            self._made[file] = step.path
        restore_metadata(step.path, target)

    def _rewrite(self, path: str, target: PathEntry, present: PathEntry) -> None:
        """Rewrite in place, so that other links and open descriptors see the restored content."""
        if (present.size, present.modified) == (target.size, target.modified):
            return
        if not target.token:
            raise NotFound(f"no copy of {path} was saved.")
        if not os.access(path, os.W_OK):
            Path(path).chmod(stat.S_IMODE(present.mode) | stat.S_IWUSR)
        with open_file(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC) as descriptor:
            self._store.write_to(target.token, descriptor, target.size)

    def _create(self, step: RestoreStep, target: PathEntry) -> None:
        if not target.token:
            raise NotFound(step.lost or "its content was not kept.")
        path = Path(step.path)
        temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}{TEMPORARY}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with open_file(temporary, flags) as descriptor:
                self._store.write_to(target.token, descriptor, target.size)
            self._world.kill_point("undo.written")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _sibling(self, path: str, target: PathEntry) -> str:
        """Return another link of the same file with the same bytes. All targets are states of one
        moment, so equal files were links, even if one link was gone when the other one changed."""
        if made := self._made.get(target.written):
            return made
        if target.links == 1:
            return ""
        if self._siblings is None:
            self._siblings = {}
            for name, known in (self._store.newest_manifest(self._root) or {}).items():
                if known.is_file and known.links > 1:
                    self._siblings.setdefault(known.file_id, []).append(name)
        for name in self._siblings.get(target.file_id, ()):
            entry = read_entry(name) if name != path else None
            if entry is not None and (entry.written, entry.size) == (target.written, target.size):
                return name
        return ""

    def _finish(self, steps: list[RestoreStep], plan: RestorePlan, call_id: int) -> RestoreResult:
        now = time.time_ns()
        done = []
        for step in steps:
            before, after = self._now.get(step.path), read_entry(step.path, now)
            if after is not None and after.is_file and step.target is not None:
                after = replace(after, token=step.target.token)
            if (before.changed if before else None) != (after.changed if after else None):
                done.append(FileChange(os.fsencode(step.path), before, after, back=step.back))
        taken = () if self._is_partial else plan.taken
        self._calls.end(call_id, CallBody(changes=tuple(done), taken=taken, ended=now))
        return RestoreResult(
            restored=tuple(each.path for each in done if each.after is not None),
            deleted=tuple(each.path for each in done if each.after is None),
            kept=(*plan.kept, *self._kept),
            lost=tuple(dict.fromkeys(self._lost)),
            notes=plan.notes,
            is_partial=self._is_partial,
        )


def _is_untouched(step: RestoreStep) -> bool:
    """Return whether nothing in a folder changed after the calls."""
    return not any(
        (found := read_entry(str(Path(folder, name)))) is not None and found.changed > step.ended
        for folder, names, files in os.walk(step.path)
        for name in (*names, *files)
    )


def _keeps_inode(step: RestoreStep) -> bool:
    """Return whether the file itself stays, and only content or metadata is restored."""
    now, target = step.now, step.target
    if now is None or target is None or now.kind != target.kind:
        return False
    return now.is_folder or now.is_link or now.is_file


def restore_metadata(path: str, target: PathEntry) -> None:
    """Restore owner, mode, extended attributes and times, as far as permitted."""
    found = os.lstat(path)
    if (found.st_uid, found.st_gid) != (target.owner, target.group):
        with contextlib.suppress(OSError):
            os.chown(path, target.owner, target.group, follow_symlinks=False)
    for name, value in target.attributes:
        with contextlib.suppress(OSError):
            os.setxattr(path, name, value, follow_symlinks=False)
    Path(path).chmod(stat.S_IMODE(target.mode))
    os.utime(path, ns=(target.modified, target.modified))


def end_undo(store: CheckpointStore, call: RecordedCall) -> None:
    """End an undo whose process died. What it has restored counts as restored, the rest as never
    begun; files that it had moved aside go back."""
    for name, waiting in call.body.guards:
        with contextlib.suppress(OSError):
            _move_back(call, os.fsdecode(name), os.fsdecode(waiting))
    done = []
    for change in call.changes:
        _remove_temporaries(Path(change.path))
        now = read_entry(change.path)
        if not has_state(change.path, now, change.before):
            # A file in neither state counts as changed, so that the next undo restores it.
            back = change.back if has_state(change.path, now, change.after) else 0
            done.append(FileChange(change.name, change.before, now, back=back))
    CallLog(store).end(call.id, CallBody(changes=tuple(done)))


def _remove_temporaries(path: Path) -> None:
    """Remove what a killed process had written of this file."""
    start = f".{path.name[:80]}."
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):  # noqa: PTH208
            middle = name.removeprefix(start).removesuffix(TEMPORARY)
            if name == f"{start}{middle}{TEMPORARY}" and middle.isdecimal():
                path.with_name(name).unlink(missing_ok=True)


def _move_back(call: RecordedCall, path: str, waiting: str) -> None:
    """Move a file to its present name, or to the intended one."""
    found = read_entry(waiting)
    if found is None:
        return
    wanted = [
        change.path
        for change in call.changes
        if change.after and (change.after.inode, change.after.size) == (found.inode, found.size)
    ]
    for name in (path, *wanted):
        if not os.path.lexists(name):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(waiting).rename(name)
            return
