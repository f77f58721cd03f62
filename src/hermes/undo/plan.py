"""Plans an undo path by path, and shows it as a diff."""

from __future__ import annotations

import difflib
import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from hermes.codec.values import Value
from hermes.undo.calls import FileChange, RecordedCall
from hermes.undo.contents import present_token
from hermes.undo.entry import PathEntry, differs, read_entry, read_entry_without_links, same_state
from hermes.undo.store import CheckpointStore

MAYBE_OTHERS = "it changed while the command ran, possibly by another program"
CHANGED_SINCE = "it was changed later"
CHANGED_BETWEEN = "it was changed in between, and that change is kept"
USED_SINCE = "the repository was used since, so its own files are kept"


class RestoreStep(Value):
    """A path changes from its present to its earlier state; None is nothing."""

    path: str
    now: PathEntry | None
    target: PathEntry | None
    back: int
    lost: str = ""
    unseen: bool = False
    ended: int = 0

    @property
    def verb(self) -> str:
        if self.target is None:
            return "delete"
        return "restore" if self.now is None else "change back"


class KeptPath(Value):
    """A path that stays as it is, and why."""

    path: str
    why: str


class RestorePlan(Value):
    """`taken` are the calls that count as undone. `lost` cannot be restored; `notes` is what the
    calls did outside the covered files."""

    session: str
    steps: tuple[RestoreStep, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    taken: tuple[int, ...] = ()
    turns: tuple[str, ...] = ()


class RestorePlanner:
    """Plans for the calls of one session, oldest first. With `overwrite`, later changes of others
    are undone too; their contents stay in the store. `only` limits it to paths."""

    def __init__(
        self,
        calls: Sequence[RecordedCall],
        taken: Iterable[int],
        *,
        overwrite: bool = False,
        only: Callable[[str], bool] | None = None,
    ) -> None:
        self._calls = [call for call in calls if call.changes]
        self._taken = frozenset(taken)
        self._floor = min(self._taken, default=0)
        self._overwrite = overwrite
        self._only = only
        self._kept: list[KeptPath] = []

    def plan(self) -> RestorePlan:
        chosen = [call for call in self._calls if call.id in self._taken]
        steps = [step for path in self._paths() if (step := self._walk(path))]
        steps = self._repositories(steps)
        return RestorePlan(
            session=self._calls[-1].session if self._calls else "",
            steps=tuple(sorted(steps, key=lambda step: step.path)),
            kept=tuple(self._kept),
            lost=tuple(step.lost for step in steps if step.lost),
            notes=tuple(dict.fromkeys(note for call in chosen for note in call.body.notes)),
            taken=tuple(sorted(self._taken)),
            turns=tuple(dict.fromkeys(call.turn for call in chosen)),
        )

    def _paths(self) -> list[str]:
        found = {
            change.name: change.path
            for call in self._calls
            if call.id in self._taken
            for change in call.changes
        }
        wanted = self._only or (lambda _: True)
        return [path for path in found.values() if wanted(path)]

    @cached_property
    def _histories(self) -> dict[str, list[tuple[RecordedCall, FileChange]]]:
        """Return changes by path, newest first, down to the oldest call to undo."""
        found: dict[str, list[tuple[RecordedCall, FileChange]]] = {}
        for call in reversed(self._calls):
            for change in call.changes if call.id >= self._floor else ():
                found.setdefault(change.path, []).append((call, change))
        return found

    def _walk(self, path: str) -> RestoreStep | None:
        now = read_entry_without_links(path)
        state, lost, unseen, ended, back = now, "", False, 0, 0
        limit: int | None = None
        history = self._histories[path]
        for call, change in history:
            if limit is not None and call.id >= limit:
                continue
            if not change.sure and not self._overwrite:
                self._kept.append(KeptPath(path=path, why=MAYBE_OTHERS))
                break
            if not self._overwrite and not matches(path, state, change.after, now):
                why = CHANGED_BETWEEN if back else CHANGED_SINCE
                self._kept.append(KeptPath(path=path, why=why))
                break
            if call.kind == "undo" and change.back and call.id not in self._taken:
                limit = change.back
                origin = next((c for k, c in history if k.id == limit), None)
                if origin is None:
                    # The present state is older than the requested one.
                    break
                state = origin.before
                continue
            state, back = change.before, call.id
            lost, unseen, ended = change.lost, change.unseen, call.body.ended
        if not back or _is_restored(path, now, state):
            return None
        return RestoreStep(
            path=path, now=now, target=state, back=back, lost=lost, unseen=unseen, ended=ended
        )

    def _repositories(self, steps: list[RestoreStep]) -> list[RestoreStep]:
        """The files of a git repository belong together: when it was used since, existing ones
        stay. Missing objects are restored in any case, because they do no harm."""
        if self._overwrite:
            return steps
        tops = {top for step in steps if (top := repository(step.path))}
        used = {top for top in tops if _used_since(top, steps)}
        kept = [s for s in steps if repository(s.path) in used and not _is_missing_object(s)]
        self._kept += [KeptPath(path=top, why=USED_SINCE) for top in sorted(used)]
        left_out = {step.path for step in kept}
        return [step for step in steps if step.path not in left_out]


def matches(
    path: str, state: PathEntry | None, left: PathEntry | None, now: PathEntry | None
) -> bool:
    """Return whether a state is the one that a call left."""
    if state is None or left is None:
        return state is left
    if state.kind != left.kind:
        return False
    if not differs(state, left) or same_state(state, left):
        return True
    if not state.is_file or state.mode != left.mode:
        return False
    if left.token and state is now:
        return present_token(path) == left.token
    # A second link that came and went only moves the time of the last change.
    return not (state.token and left.token) and _same_but_for_links(state, left)


def _same_but_for_links(one: PathEntry, other: PathEntry) -> bool:
    return (one.inode, one.device, one.size, one.modified, one.mode) == (
        *(other.inode, other.device, other.size, other.modified, other.mode),
    )


def _is_restored(path: str, now: PathEntry | None, target: PathEntry | None) -> bool:
    """Return whether the path already has the requested state."""
    if now is None or target is None:
        return now is target
    if (now.mode, now.owner, now.group) != (target.mode, target.owner, target.group):
        return False
    if now.is_link:
        return now.target == target.target
    if not now.is_file or now.size != target.size:
        return not now.is_file
    if (now.inode, now.modified, now.changed) == (target.inode, target.modified, target.changed):
        return True
    same = bool(target.token) and present_token(path) == target.token
    return same and now.modified == target.modified


def repository(path: str) -> str:
    """Return the `.git` folder that contains a path, or ""."""
    head, found, _ = path.partition("/.git/")
    return head + "/.git" if found else ""


def _is_missing_object(step: RestoreStep) -> bool:
    return "/.git/objects/" in step.path and step.now is None


def _used_since(top: str, steps: Sequence[RestoreStep]) -> bool:
    """Return whether a file of the repository is newer than everything that the calls left in it.
    Reading a repository writes its index, so that does not count. What the calls left may have been
    used since, so nothing counts as older than the end of the calls."""
    own = {step.path for step in steps}
    inside = [step for step in steps if repository(step.path) == top]
    last = max((step.now.changed for step in inside if step.now), default=0)
    if not last:
        return False
    last = min(last, max(step.ended for step in inside) or last)
    for folder, _, names in os.walk(top):
        for name in names:
            path = posixpath.join(folder, name)
            if path in own or name in ("index", "index.lock", "FETCH_HEAD"):
                continue
            entry = read_entry(path)
            if entry is not None and entry.changed > last:
                return True
    return False


MOST_BYTES = 200_000


def unified_diff(store: CheckpointStore, plan: RestorePlan, root: str) -> str:
    """Return one unified diff from the present to the restored state."""
    return "".join(_diff_step(store, step, root) for step in plan.steps if _is_file(step))


def _diff_step(store: CheckpointStore, step: RestoreStep, root: str) -> str:
    name = step.path.removeprefix(root.rstrip("/") + "/")
    now, then = _read_present(step), _read_stored(store, step.target)
    if now is None or then is None:
        return f"{name}: not shown (not text, too long, or not kept)\n"
    lines = difflib.unified_diff(
        now.splitlines(keepends=True),
        then.splitlines(keepends=True),
        f"now/{name}" if step.now else "/dev/null",
        f"restored/{name}" if step.target else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _is_file(step: RestoreStep) -> bool:
    return bool((step.now and step.now.is_file) or (step.target and step.target.is_file))


def _read_present(step: RestoreStep) -> str | None:
    if step.now is None or not step.now.is_file:
        return ""
    if step.now.size > MOST_BYTES:
        return None
    try:
        return Path(step.path).read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _read_stored(store: CheckpointStore, entry: PathEntry | None) -> str | None:
    if entry is None or not entry.is_file:
        return ""
    if entry.size > MOST_BYTES or not entry.token:
        return None
    data = store.data(entry.token)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
