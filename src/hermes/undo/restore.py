"""Executes a restore plan in a way that can be undone and survives a crash."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.core.world import World
from hermes.undo import contents
from hermes.undo.attribution import WrittenFile, with_token
from hermes.undo.calls import CallBody, CallLog, FileChange
from hermes.undo.capture import ContentCapture
from hermes.undo.coverage import Coverage
from hermes.undo.entry import PathEntry, read_entry, read_entry_without_links
from hermes.undo.plan import KeptPath, RestorePlan, RestoreStep
from hermes.undo.store import CheckpointStore


class WritableFolders:
    def __init__(self) -> None:
        self._modes: dict[str, tuple[int, int]] = {}

    def open(self, folder: str) -> None:
        """Make sure that names in it can be created and removed; also open closed folders above
        it."""
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


KEPT_FULL = "it has grown since the turn, or cannot be stored, so it is kept"


class RestoreResult(Value):
    """What was done to which path, what stayed, and what could not be restored."""

    call_id: int = 0
    restored: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Restorer:
    def __init__(
        self,
        store: CheckpointStore,
        cover: Coverage,
        world: World,
        *,
        root: str,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._store = store
        self._calls = CallLog(store)
        self._cover = cover
        self._world = world
        self._root = root
        self._now_ns = now_ns
        self._folders = WritableFolders()
        self._held: dict[WrittenFile, list[str]] = {}
        self._made: dict[WrittenFile, str] = {}
        self._now: dict[str, PathEntry] = {}
        self._kept: list[KeptPath] = []
        self._stuck: set[str] = set()
        self._lost: list[str] = []
        self._siblings: dict[tuple[int, int], list[str]] | None = None

    def apply(self, plan: RestorePlan, *, session: str, turn: str, words: str) -> RestoreResult:
        """Restore everything possible, and name the rest."""
        steps = list(plan.steps)
        aside = self._plan_waiting(steps)
        call_id = self._record_intention(steps, aside, session, turn, words)
        self._world.kill_point("undo.restoring")
        try:
            self._move_waiting(aside)
            for step in sorted(steps, key=lambda each: each.path, reverse=True):
                if step.now is not None and not _keeps_inode(step):
                    self._attempt(step, self._remove)
            for step in sorted(steps, key=lambda each: each.path):
                if step.target is not None:
                    self._attempt(step, self._restore_path)
                self._world.kill_point("undo.step")
        finally:
            self._drop_held()
            self._folders.close()
        for step in sorted(steps, key=lambda each: each.path, reverse=True):
            if step.target is not None and step.target.is_folder:
                _restore_metadata(step.path, step.target)
        return self._finish(steps, plan, call_id)

    # Before anything happens

    def _record_intention(
        self, steps: list[RestoreStep], aside: dict[str, str], session: str, turn: str, words: str
    ) -> int:
        present = {step.path: step.now for step in steps if step.now is not None}
        with self._store.writing():
            capture = ContentCapture(self._store, self._cover, lambda _: 1 << 62, self._now_ns)
            self._now = present | capture.capture_all(present, is_named=lambda _: True).entries
            body = CallBody(
                changes=tuple(
                    FileChange(os.fsencode(s.path), self._now.get(s.path), s.target, back=s.back)
                    for s in steps
                ),
                guards=tuple((os.fsencode(a), os.fsencode(b)) for a, b in aside.items()),
            )
            return self._calls.begin(
                session=session,
                turn=turn,
                root=self._root,
                at=self._world.clock.now(),
                kind="undo",
                words=words,
                body=body,
            )

    def _plan_waiting(self, steps: list[RestoreStep]) -> dict[str, str]:
        """Return renamed files, and where they wait until their old names are free: in a folder
        that stays."""
        wanted = {_file(s.target): s for s in steps if s.target is not None and s.target.is_file}
        going = {step.path for step in steps if step.now is not None and not _keeps_inode(step)}
        mark = self._world.new_id("undo")
        found: dict[str, str] = {}
        for step in steps:
            now = step.now
            other = wanted.get(_file(now)) if now is not None and now.is_file else None
            if now is None or other is None or other.target is None or other.path == step.path:
                continue
            if now.size == other.target.size:
                folder = next(p for p in Path(step.path).parents if str(p) not in going)
                found[step.path] = str(folder / f".hermes-{mark}-{len(found)}")
        return found

    def _move_waiting(self, aside: dict[str, str]) -> None:
        for path, name in aside.items():
            entry = read_entry(path)
            with contextlib.suppress(OSError):
                self._folders.open(str(Path(path).parent))
                self._folders.open(str(Path(name).parent))
                Path(path).rename(name)
                if entry is not None:
                    self._held.setdefault(_file(entry), []).append(name)

    # One path

    def _attempt(self, step: RestoreStep, work: Callable[[RestoreStep], None]) -> None:
        try:
            work(step)
        except NotFound as error:
            self._lost.append(f"{step.path}: {error}")
        except OSError as error:
            self._lost.append(f"{step.path} could not be restored: {error.strerror or error}.")

    def _remove(self, step: RestoreStep) -> None:
        now = read_entry_without_links(step.path)
        if now is None:
            return
        self._folders.open(str(Path(step.path).parent))
        if now.is_folder:
            self._remove_folder(step)
        elif now.is_file and not self._now[step.path].token and not self._move_to_store(step, now):
            self._keep(step.path, KEPT_FULL)
        else:
            Path(step.path).unlink(missing_ok=True)

    def _remove_folder(self, step: RestoreStep) -> None:
        try:
            self._folders.open(step.path)
            Path(step.path).rmdir()
        except OSError:
            if not (step.unseen and self._is_untouched(step) and self._move_to_store(step, None)):
                self._keep(step.path, "it is not empty")

    def _keep(self, path: str, why: str) -> None:
        self._stuck.add(path)
        self._kept.append(KeptPath(path=path, why=why))

    def _is_untouched(self, step: RestoreStep) -> bool:
        return not any(
            (found := read_entry(str(Path(folder, name)))) is not None
            and found.changed > step.ended
            for folder, names, files in os.walk(step.path)
            for name in (*names, *files)
        )

    def _move_to_store(self, step: RestoreStep, now: PathEntry | None) -> bool:
        """Move into the store what is too large to copy."""
        entry = now or self._now[step.path]
        token = contents.stamp_token(contents.MOVED, entry)
        try:
            Path(step.path).rename(self._store.object_path(token))
        except OSError:
            return False
        self._store.put_object(token, entry.weight)
        self._now[step.path] = with_token(entry, token)
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
        if target.token[:1] == contents.MOVED:
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
            _restore_metadata(step.path, target)
        else:
            raise NotFound("it was a device or a socket.")

    def _restore_file(self, step: RestoreStep, target: PathEntry) -> None:
        file = _file(target)
        present = read_entry_without_links(step.path)
        if self._held.get(file):
            Path(self._held[file].pop()).rename(step.path)
            self._made[file] = step.path
        elif present is not None and (present.device, present.inode) == file[:2]:
            self._rewrite(step.path, target, present)
            self._made[file] = step.path
        elif target.links > 1 and (sibling := self._sibling(step.path, target)):
            Path(step.path).unlink(missing_ok=True)
            os.link(sibling, step.path)
        else:
            self._create(step, target)
            self._made[file] = step.path
        _restore_metadata(step.path, target)

    def _rewrite(self, path: str, target: PathEntry, present: PathEntry) -> None:
        """Rewrite in place, so that other links and open descriptors see the restored content."""
        if (present.size, present.modified) == (target.size, target.modified):
            return
        if not target.token:
            raise NotFound(f"{path} was not kept.")
        if not os.access(path, os.W_OK):
            Path(path).chmod(stat.S_IMODE(present.mode) | stat.S_IWUSR)
        with contents.open_file(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC) as descriptor:
            self._store.write_to(target.token, descriptor, target.size)

    def _create(self, step: RestoreStep, target: PathEntry) -> None:
        if not target.token:
            raise NotFound(step.lost or "its content was not kept.")
        path = Path(step.path)
        temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}.undo")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with contents.open_file(temporary, flags) as descriptor:
                self._store.write_to(target.token, descriptor, target.size)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def _sibling(self, path: str, target: PathEntry) -> str:
        """Return another link of the same file with the same bytes."""
        place = (target.device, target.inode)
        if made := self._made.get(_file(target)):
            return made
        if self._siblings is None:
            self._siblings = {}
            for name, known in (self._store.newest_manifest(self._root) or {}).items():
                if known.is_file and known.links > 1:
                    self._siblings.setdefault((known.device, known.inode), []).append(name)
        for name in self._siblings.get(place, ()):
            entry = read_entry(name) if name != path else None
            if entry is not None and (_file(entry), entry.size) == (_file(target), target.size):
                return name
        return ""

    def _drop_held(self) -> None:
        for name in (name for names in self._held.values() for name in names):
            with contextlib.suppress(OSError):
                Path(name).unlink()

    def _finish(self, steps: list[RestoreStep], plan: RestorePlan, call_id: int) -> RestoreResult:
        now = self._now_ns()
        changes = [self._change(step, now) for step in steps]
        done = [change for change in changes if change is not None]
        body = CallBody(changes=tuple(done), taken=plan.taken, ended=now)
        self._calls.end(call_id, body)
        return RestoreResult(
            call_id=call_id,
            restored=tuple(each.path for each in done if each.after is not None),
            deleted=tuple(each.path for each in done if each.after is None),
            kept=(*plan.kept, *self._kept),
            lost=tuple(dict.fromkeys(self._lost)),
            notes=plan.notes,
        )

    def _change(self, step: RestoreStep, now_ns: int) -> FileChange | None:
        before = self._now.get(step.path)
        after = read_entry(step.path, now_ns)
        if after is not None and after.is_file and step.target is not None:
            after = with_token(after, step.target.token)
        if before is not None and after is not None and before.changed == after.changed:
            return None
        if before is None and after is None:
            return None
        return FileChange(os.fsencode(step.path), before, after, back=step.back)


def _file(entry: PathEntry) -> WrittenFile:
    return entry.device, entry.inode, entry.modified


def _keeps_inode(step: RestoreStep) -> bool:
    """Return whether the file itself stays, and only content or metadata is restored."""
    now, target = step.now, step.target
    if now is None or target is None or now.kind != target.kind:
        return False
    return now.is_folder or now.is_link or now.is_file


def _restore_metadata(path: str, target: PathEntry) -> None:
    """Restore owner, mode, extended attributes and times, as far as permitted."""
    found = os.lstat(path)
    if (found.st_uid, found.st_gid) != (target.owner, target.group):
        with contextlib.suppress(OSError):
            os.chown(path, target.owner, target.group, follow_symlinks=False)
    with contextlib.suppress(OSError):
        for name, value in target.attributes:
            os.setxattr(path, name, value, follow_symlinks=False)
    Path(path).chmod(stat.S_IMODE(target.mode))
    os.utime(path, ns=(target.modified, target.modified))
