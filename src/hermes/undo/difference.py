"""Shows what an undo would change in text files, as a diff."""

from __future__ import annotations

import difflib
from pathlib import Path

from hermes.undo.entry import PathEntry
from hermes.undo.plan import RestorePlan, RestoreStep
from hermes.undo.store import CheckpointStore

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
