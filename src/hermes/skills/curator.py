"""Archives unused skills."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Literal

from hermes.codec.atomic_files import replace_file, sync_folder
from hermes.codec.values import Value, replace
from hermes.config.extension_settings import CuratorSettings
from hermes.core.errors import NotFound, UsageError
from hermes.core.world import Clock
from hermes.skills.files import lock_skills
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillStore
from hermes.skills.usage import CuratorState, SkillUsage, SkillUsageStore, read_state, write_state

ARCHIVE = ".archive"
BACKUPS = ".curator_backups"
DAY = 86_400.0


class Move(Value):
    """A planned or completed change of a skill's state."""

    name: str
    to: Literal["stale", "archived"]
    idle_days: int


class Curator:
    """Archives skills that are no longer used. `needed` returns skills that must stay, such as
    those of a schedule."""

    def __init__(
        self,
        store: SkillStore,
        usages: SkillUsageStore,
        clock: Clock,
        settings: CuratorSettings,
        *,
        needed: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._store = store
        self._usages = usages
        self._clock = clock
        self._settings = settings
        self._needed = needed
        self._folder = store.folder

    def state(self) -> CuratorState:
        return read_state(self._folder)

    def pause(self, paused: bool) -> None:
        write_state(self._folder, replace(self.state(), paused=paused))

    def plan(self, archive_after_days: float = 0) -> tuple[Move, ...]:
        """Return what a run would do. Only the agent's own skills move; pinned and needed skills
        stay."""
        limit = archive_after_days or self._settings.archive_after_days
        movable, surplus = self._movable(), self._surplus()
        moves: list[Move] = []
        for name, (idle, state) in movable.items():
            if idle >= limit or name in surplus:
                moves.append(Move(name=name, to="archived", idle_days=int(idle)))
            elif idle >= self._settings.stale_after_days and state != "stale":
                moves.append(Move(name=name, to="stale", idle_days=int(idle)))
        return tuple(moves)

    def run(self, archive_after_days: float = 0) -> tuple[Move, ...]:
        moves = self.plan(archive_after_days)
        if moves and self._settings.backup.enabled:
            self.backup()
        for move in moves:
            if move.to == "archived":
                self.archive(move.name)
            else:
                self._usages.change(move.name, lambda now: replace(now, state="stale"))
        write_state(self._folder, replace(self.state(), last_run_at=self._clock.now()))
        return moves

    def archive_surplus(self) -> tuple[str, ...]:
        """Archive the longest unused of the agent's skills beyond `most_skills`; return their
        names."""
        surplus = self._surplus()
        for name in surplus:
            self.archive(name)
        return surplus

    def archive(self, name: str) -> Path:
        """Move the skill to the archive. Raises UsageError for a skill outside the home."""
        entry = self._store.find(name)
        if entry.kind != "home":
            raise UsageError(
                f"The skill {name} is in {entry.folder}, which is read-only for Hermes."
            )
        with lock_skills(self._folder):
            target = self._folder / ARCHIVE / name
            if target.exists():
                target = target.with_name(f"{name}.{int(self._clock.now())}")
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            relative_path = Path(entry.folder).relative_to(self._folder).as_posix()
            # Written before the move, so that `restore` can always put it back.
            replace_file(self._folder / ARCHIVE / f"{target.name}.place", relative_path.encode())
            Path(entry.folder).rename(target)
            sync_folder(target.parent)
        at = self._usages.timestamp()
        self._usages.change(name, lambda now: replace(now, state="archived", archived_at=at))
        return target

    def list_archived(self) -> tuple[str, ...]:
        folder = self._folder / ARCHIVE
        found = (path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
        return tuple(sorted(found))

    def restore(self, name: str) -> Path:
        source = self._folder / ARCHIVE / name
        if name not in self.list_archived():
            raise NotFound(f"The archive has no skill {name!r}.", near=self.list_archived())
        note = source.with_name(f"{name}.place")
        relative_path = note.read_text(encoding="utf-8").strip() if note.is_file() else name
        target = (self._folder / relative_path).resolve()
        if not target.is_relative_to(self._folder.resolve()) or target.exists():
            raise UsageError(f"{target} exists; move it and restore again.")
        with lock_skills(self._folder):
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            source.rename(target)
            note.unlink(missing_ok=True)
        at = self._usages.timestamp()
        self._usages.change(
            target.name,
            lambda now: replace(now, state="active", archived_at=None, last_used_at=at),
        )
        return target

    # Backups of all skills, made before a run.

    def backup(self) -> str:
        stamp = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
        packed = BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path in sorted(self._folder.iterdir()):
                if not path.name.startswith(".") or path.name in (".usage.json", ARCHIVE):
                    tar.add(path, arcname=path.name)
        replace_file(self._folder / BACKUPS / stamp / "skills.tar.gz", packed.getvalue())
        for old in self.backups()[: -self._settings.backup.keep]:
            (self._folder / BACKUPS / old / "skills.tar.gz").unlink(missing_ok=True)
            (self._folder / BACKUPS / old).rmdir()
        return stamp

    def backups(self) -> tuple[str, ...]:
        folder = self._folder / BACKUPS
        return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()

    def rollback(self, stamp: str = "") -> tuple[str, ...]:
        """Restore the skills that the backup has and the home lacks; existing skills stay. Return
        the restored names."""
        known = self.backups()
        chosen = stamp or (known[-1] if known else "")
        if chosen not in known:
            raise NotFound(f"There is no backup {stamp!r}.", near=known[-3:])
        # Read before the next backup, which may delete this one.
        packed = (self._folder / BACKUPS / chosen / "skills.tar.gz").read_bytes()
        self.backup()
        back: list[str] = []
        with lock_skills(self._folder), tarfile.open(fileobj=BytesIO(packed)) as tar:
            members = tar.getmembers()
            for main in members:
                relative_path = main.name.removesuffix(f"/{MAIN}")
                if relative_path == main.name or relative_path.startswith("."):
                    continue
                if (self._folder / relative_path).exists():
                    continue
                inner = [
                    m
                    for m in members
                    if m.name == relative_path or m.name.startswith(f"{relative_path}/")
                ]
                # Our own archives; Python before 3.11.4 has no filters.
                if hasattr(tarfile, "data_filter"):
                    tar.extractall(self._folder, members=inner, filter="data")
                else:
                    tar.extractall(self._folder, members=inner)
                back.append(Path(relative_path).name)
        return tuple(back)

    def _movable(self) -> dict[str, tuple[float, str]]:
        """Return idle days and state of each skill that may be archived."""
        known, needed = self._usages.all(), set(self._needed())
        movable: dict[str, tuple[float, str]] = {}
        for entry in self._store.scan().entries:
            usage = known.get(entry.name, SkillUsage())
            origin = self._store.provenance(entry)
            own = origin == "agent" or (origin == "bundled" and self._settings.prune_builtins)
            if usage.pinned or entry.name in needed or not own:
                continue
            # The file's age stands for the last use of a skill that was never used.
            if usage.last_at:
                last = datetime.fromisoformat(usage.last_at).timestamp()
            else:
                last = (Path(entry.folder) / MAIN).stat().st_mtime
            movable[entry.name] = ((self._clock.now() - last) / DAY, usage.state)
        return movable

    def _surplus(self) -> tuple[str, ...]:
        most = self._settings.most_skills
        scanned = self._store.scan()
        if not most or len(scanned.entries) <= most:
            return ()
        mine = [each for each in scanned.entries if self._store.provenance(each) == "agent"]
        names, movable = {entry.name for entry in mine}, self._movable()
        idle = sorted((name for name in movable if name in names), key=lambda n: -movable[n][0])
        return tuple(idle[: max(0, len(mine) - most)])
