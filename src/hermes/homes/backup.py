"""Backs up a home to one file and restores it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from hermes.codec.values import Value
from hermes.config.home import Home
from hermes.core.errors import ConfigError, NotFound, UsageError
from hermes.homes.archive_files import FOLDER as OUTSIDE_FOLDER
from hermes.homes.archive_files import PackedHome, UserFiles, is_persistent, pack, put_file
from hermes.journal.leases import is_alive, lock_folder

FOLDER = "backups"
QUICK = frozenset((".env", "SOUL.md", "auth.json", "config.yaml", "hermes.db"))
QUICK_LIMIT = 20
_HOME_MARKERS = frozenset(
    ("SOUL.md", "auth.json", "config.yaml", "hermes.db", "memories", "skills")
)


class Backup(Value):
    file: str
    files: int
    bytes: int


class SnapshotInfo(Value):
    """A snapshot stored in the home."""

    name: str
    file: str
    at: float


class RestoreReport(Value):
    """What a restore has changed."""

    added: int
    # Files that existed before.
    replaced: int
    # Backup with the old content of the replaced files.
    before: str = ""
    # Restored files outside the home.
    outside: tuple[str, ...] = ()


def back_up(
    home: Home,
    now: float,
    *,
    to: Path | None = None,
    label: str = "",
    beside: Mapping[str, Path] | None = None,
) -> Backup:
    """Pack everything that cannot be regenerated, including secrets, and the files in `beside`,
    keyed by their path relative to the user's home folder."""
    target = to or _unused_path(home, f"hermes-{_stamp(now)}", label)
    more = {f"{OUTSIDE_FOLDER}/{name}": path for name, path in (beside or {}).items()}
    return _create(home, target, more=more)


def snapshot(home: Home, now: float, *, label: str = "", keep: int = QUICK_LIMIT) -> Backup:
    """Pack only settings, secrets and sessions. Removes the oldest snapshots with this label beyond
    `keep`."""
    target = _unused_path(home, f"quick-{_stamp(now)}", label)
    found = _create(home, target, QUICK)
    for old in sorted(target.parent.glob(f"quick-????????-??????{_ending(label)}.zip"))[:-keep]:
        old.unlink()
    return found


def list_snapshots(home: Home) -> tuple[SnapshotInfo, ...]:
    """Return the snapshots, newest first."""
    found = (home.root / FOLDER).glob("quick-*.zip")
    snapshots = (
        SnapshotInfo(name=each.stem, file=str(each), at=each.stat().st_mtime) for each in found
    )
    return tuple(sorted(snapshots, key=lambda each: (each.at, each.name), reverse=True))


def prune_snapshots(home: Home, *, keep: int) -> int:
    """Remove all but the newest `keep` snapshots; return how many were removed."""
    old = list_snapshots(home)[keep:]
    for each in old:
        Path(each.file).unlink(missing_ok=True)
    return len(old)


def _create(
    home: Home,
    target: Path,
    only: frozenset[str] | None = None,
    more: Mapping[str, Path] | None = None,
) -> Backup:
    def select(path: PurePosixPath) -> bool:
        return is_persistent(path) and (only is None or str(path) in only)

    if not home.root.is_dir():
        raise NotFound(f"There is no home at {home.root} yet, so there is nothing to back up.")
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file.")
    if home.root in target.parents:
        home.ensure_folder(target.parent)
    count = pack(home.root, target.absolute(), select, more)
    return Backup(file=str(target), files=count, bytes=target.stat().st_size)


def _unused_path(home: Home, start: str, label: str) -> Path:
    """Return an unused file name, also for two backups within one second."""
    number, path = 2, home.root / FOLDER / f"{start}{_ending(label)}.zip"
    while path.exists():
        path = path.with_name(f"{start}{_ending(label)}-{number}.zip")
        number += 1
    return path


def _ending(label: str) -> str:
    plain = "".join(c if c.isalnum() or c in "-_" else "-" for c in label)
    return f"-{plain}" if plain else ""


def _stamp(now: float) -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.localtime(now))


def inspect(file: Path) -> tuple[PurePosixPath, ...]:
    """Return the files that a restore would write. Raises UsageError if the file is not a backup of
    a home."""
    names = tuple(
        name
        for name in PackedHome(file).names
        if is_persistent(name) and name.parts[0] != OUTSIDE_FOLDER
    )
    if not any(name.parts[0] in _HOME_MARKERS for name in names):
        raise UsageError(f"{file} is not a backup of a home; `hermes backup` creates one.")
    return names


def outside_files_in(file: Path) -> tuple[str, ...]:
    """Return the files of a backup that belong outside the home, relative to the user's home
    folder."""
    found = (name for name in PackedHome(file).names if name.parts[0] == OUTSIDE_FOLDER)
    return tuple("/".join(name.parts[1:]) for name in found if len(name.parts) > 1)


def restore(home: Home, file: Path, now: float, beside: UserFiles | None = None) -> RestoreReport:
    """Overwrite the home's files with those of a backup; other files stay. With `beside`, files
    outside the home are restored too. Replaced files are backed up first. Raises ConfigError while
    the home is in use."""
    names = inspect(file)
    refuse_if_used(home)
    others = outside_files_in(file) if beside else ()
    replaced: dict[str, Path] = {}
    if beside is not None:
        beside.check(others)
        replaced = {name: beside.at(name) for name in others if beside.at(name).exists()}
    existing = [name for name in names if (home.root / name).exists()]
    before = ""
    if existing or replaced:
        before = back_up(home, now, label="before-import", beside=replaced).file
    home.ensure_folder(home.root)
    # On the same file system as the home, so that each file is replaced atomically.
    with TemporaryDirectory(dir=home.root.parent, prefix=".restoring-") as scratch:
        PackedHome(file).unpack(Path(scratch))
        for name in names:
            home.ensure_folder((home.root / name).parent)
            put_file(Path(scratch) / name, home.root / name)
        if beside is not None:
            others = beside.put_back(Path(scratch) / OUTSIDE_FOLDER)
    home.index.unlink(missing_ok=True)
    return RestoreReport(
        added=len(names) - len(existing), replaced=len(existing), before=before, outside=others
    )


def used_by(home: Home) -> tuple[str, ...]:
    """Return the processes that have a session of this home open."""
    folder = lock_folder(home.root)
    owners = sorted(path.stem for path in folder.glob("*-*.lock"))
    return tuple(name.partition("-")[0] for name in owners if is_alive(folder, name))


def refuse_if_used(home: Home) -> None:
    if holders := used_by(home):
        raise ConfigError(
            f"{home.root} is in use by process {', '.join(holders)}; stop it and try again."
        )
