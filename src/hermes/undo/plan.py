"""Plans an undo path by path, and shows it as a diff."""

from __future__ import annotations

import difflib
import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from hermes.codec.values import Value
from hermes.undo.calls import FileChange, RecordedCall
from hermes.undo.entry import (
    PathEntry,
    differs,
    present_token,
    read_entry,
    read_entry_without_links,
)
from hermes.undo.scanner import inside
from hermes.undo.store import CheckpointStore

MAYBE_OTHERS = "it changed while the command ran, possibly by another program"
CHANGED_SINCE = "it was changed later"
CHANGED_BETWEEN = "it was changed in between, and that change is kept"
USED_SINCE = "the repository was used since, so its own files are kept"


class RestoreStep(Value):
    """The change of a path from its present to its earlier state; None means that nothing is
    there."""

    path: str
    now: PathEntry | None
    target: PathEntry | None
    back: int
    lost: str = ""
    unseen: bool = False
    ended: int = 0


class KeptPath(Value):
    """A path that stays as it is, and why."""

    path: str
    why: str


class RestorePlan(Value):
    """What an undo will do, and what it cannot do."""

    steps: tuple[RestoreStep, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    lost: tuple[str, ...] = ()  # what cannot be restored
    notes: tuple[str, ...] = ()  # what the calls did outside the covered files
    taken: tuple[int, ...] = ()  # the calls that count as undone
    turns: tuple[str, ...] = ()


def plan_restore(
    calls: Sequence[RecordedCall], taken: Iterable[int], *, overwrite: bool = False, only: str = ""
) -> RestorePlan:
    """Plan to undo the taken calls among those of one session, oldest first. With `overwrite`,
    later changes of others are undone too; their contents stay in the store. `only` limits the plan
    to a path and what is below it."""
    calls = [call for call in calls if call.changes]
    undone = frozenset(taken)
    floor = min(undone, default=0)
    # Changes by path, newest first, down to the oldest call to undo.
    histories: dict[str, list[tuple[RecordedCall, FileChange]]] = {}
    for call in reversed(calls):
        for change in call.changes if call.id >= floor else ():
            histories.setdefault(change.path, []).append((call, change))
    chosen = [call for call in calls if call.id in undone]
    steps: list[RestoreStep] = []
    kept: list[KeptPath] = []
    for path in dict.fromkeys(change.path for call in chosen for change in call.changes):
        if not only or inside(path, only):
            step, why = _plan_path(path, histories[path], undone, overwrite=overwrite)
            if step is not None:
                steps.append(step)
            if why:
                kept.append(KeptPath(path=path, why=why))
    if not overwrite:
        # The files of a git repository belong together: when it was used since, existing ones
        # stay. Missing objects are restored in any case, because they do no harm.
        tops = sorted({top for step in steps if (top := _repository(step.path))})
        used = [top for top in tops if _used_since(top, steps)]
        kept += [KeptPath(path=top, why=USED_SINCE) for top in used]
        steps = [
            step
            for step in steps
            if _repository(step.path) not in used
            or ("/.git/objects/" in step.path and step.now is None)
        ]
    return RestorePlan(
        steps=tuple(sorted(steps, key=lambda step: step.path)),
        kept=tuple(kept),
        lost=tuple(step.lost for step in steps if step.lost),
        notes=tuple(dict.fromkeys(note for call in chosen for note in call.body.notes)),
        taken=tuple(sorted(undone)),
        turns=tuple(dict.fromkeys(call.turn for call in chosen)),
    )


def _plan_path(
    path: str,
    history: list[tuple[RecordedCall, FileChange]],
    taken: frozenset[int],
    *,
    overwrite: bool,
) -> tuple[RestoreStep | None, str]:
    """Return the step, if one is needed, and why the path is kept before the requested state."""
    now = state = read_entry_without_links(path)
    oldest: tuple[RecordedCall, FileChange] | None = None
    limit: int | None = None
    why = ""
    for call, change in history:
        if limit is not None and call.id >= limit:
            continue
        if not overwrite:
            if not change.sure:
                why = MAYBE_OTHERS
            elif not _is_left_by(path, state, change.after, now):
                why = CHANGED_BETWEEN if oldest else CHANGED_SINCE
            if why:
                break
        if call.kind == "undo" and change.back and call.id not in taken:
            limit = change.back
            origin = next((c for k, c in history if k.id == limit), None)
            if origin is None:
                # The present state is older than the requested one.
                break
            state = origin.before
            continue
        state, oldest = change.before, (call, change)
    if oldest is None or has_state(path, now, state):
        return None, why
    call, change = oldest
    step = RestoreStep(
        path=path,
        now=now,
        target=state,
        back=call.id,
        lost=change.lost,
        unseen=change.unseen,
        ended=call.body.ended,
    )
    return step, why


def _is_left_by(
    path: str, state: PathEntry | None, left: PathEntry | None, now: PathEntry | None
) -> bool:
    """Return whether a state is the one that a call left. The state may be older than `now`."""
    if state is None or left is None:
        return state is left
    if state.kind != left.kind:
        return False
    if not differs(state, left):
        return True
    if not state.is_file:
        same = (state.mode, state.owner, state.group) == (left.mode, left.owner, left.group)
        return same and state.target == left.target
    if state.mode != left.mode:
        return False
    if left.token and state is now:
        return present_token(path) == left.token
    if state.token and left.token:
        return (state.token, state.owner, state.group) == (left.token, left.owner, left.group)
    # A second link that came and went only moves the time of the last change.
    return (state.written, state.size) == (left.written, left.size)


def has_state(path: str, now: PathEntry | None, wanted: PathEntry | None) -> bool:
    """Return whether a path with the state `now` has the wanted state."""
    if now is None or wanted is None:
        return now is wanted
    if (now.mode, now.owner, now.group) != (wanted.mode, wanted.owner, wanted.group):
        return False
    if not now.is_file:
        return now.target == wanted.target
    if (now.size, now.modified) != (wanted.size, wanted.modified):
        return False
    if (now.inode, now.changed) == (wanted.inode, wanted.changed):
        return True
    return bool(wanted.token) and present_token(path) == wanted.token


def _repository(path: str) -> str:
    """Return the `.git` folder that contains a path, or ""."""
    head, found, _ = path.partition("/.git/")
    return head + "/.git" if found else ""


def _used_since(top: str, steps: Sequence[RestoreStep]) -> bool:
    """Return whether a file of the repository is newer than everything that the calls left in it.
    Reading a repository writes its index, so that does not count. What the calls left may have been
    used since, so nothing counts as older than the end of the calls."""
    own = {step.path for step in steps}
    steps = [step for step in steps if _repository(step.path) == top]
    last = max((step.now.changed for step in steps if step.now), default=0)
    if not last:
        return False
    last = min(last, max(step.ended for step in steps) or last)
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
    parts: list[str] = []
    for step in plan.steps:
        if not any(each is not None and each.is_file for each in (step.now, step.target)):
            continue
        name = step.path.removeprefix(root.rstrip("/") + "/")
        token = step.target.token if step.target else b""
        now = _text(step.now, Path(step.path).read_bytes)
        then = _text(step.target, partial(store.data, token))
        if now is None or then is None:
            parts.append(f"{name}: not shown (not text, too long, or not kept)\n")
            continue
        lines = difflib.unified_diff(
            now.splitlines(keepends=True),
            then.splitlines(keepends=True),
            f"now/{name}" if step.now else "/dev/null",
            f"restored/{name}" if step.target else "/dev/null",
        )
        parts += [line if line.endswith("\n") else line + "\n" for line in lines]
    return "".join(parts)


def _text(entry: PathEntry | None, read: Callable[[], bytes | None]) -> str | None:
    """Return the text of a file, None when it cannot be shown."""
    if entry is None or not entry.is_file:
        return ""
    if entry.size > MOST_BYTES:
        return None
    try:
        data = read()
        return None if data is None else data.decode()
    except (OSError, UnicodeDecodeError):
        return None
