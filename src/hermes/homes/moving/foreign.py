"""What another agent kept, as far as it can be used here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from hermes.codec.values import JsonObject, Value

Kind = Literal["setting", "secret", "soul", "memory", "skill", "sessions"]
State = Literal["taken", "would be taken", "there already", "left out"]


class ForeignHome(Value):
    """`settings` are in our keys; `memories` are entries by the file they go to; `skills` are
    folders that hold a SKILL.md; `sessions` gives export lines of the journal, oldest first."""

    root: Path
    settings: JsonObject = {}
    secrets: dict[str, str] = {}
    soul: str = ""
    memories: dict[Literal["memory", "user"], tuple[str, ...]] = {}
    skills: tuple[Path, ...] = ()
    sessions: Callable[[], Iterator[bytes]] | None = None
    problems: tuple[str, ...] = ()


class MigrationItem(Value):
    """One thing that was found, and what became of it; `note` says why."""

    kind: Kind
    name: str
    state: State
    note: str = ""


def text_of(path: Path) -> str:
    """The text of a file; "" when there is none that could be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def skill_folders(root: Path) -> tuple[Path, ...]:
    """Folders with a SKILL.md below a folder; hidden ones and links are passed over."""
    if not root.is_dir():
        return ()
    found = (path.parent for path in sorted(root.rglob("SKILL.md")) if not path.is_symlink())
    return tuple(
        folder
        for folder in found
        if not any(part.startswith(".") for part in folder.relative_to(root).parts)
    )
