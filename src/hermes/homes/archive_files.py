"""Packs and unpacks homes, including files outside them."""

from __future__ import annotations

import os
import sqlite3
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.home import Home, unwritable_error
from hermes.core.errors import ConfigError, HermesError, NotFound, UsageError
from hermes.policy.places.places import Places

if TYPE_CHECKING:
    from hermes.memory.service import MemoryService

SECRET_FILES = frozenset((".env", "auth.json"))
# Regenerated automatically or by reinstalling.
_REGENERABLE = frozenset(("cache", "checkpoints", "locks", "models"))
_BACKUPS = frozenset(("backups", "state-snapshots"))
_DEPENDENCIES = frozenset(("node_modules", ".venv", "venv", "__pycache__", ".git"))
_TRANSIENT = (".lock", ".draft", ".part", ".pid", "-wal", "-shm", "-journal")
_DATABASE = ".db"
# Derived from the journal.
_DERIVED = frozenset(("index.db",))

# Output of scheduled jobs, and the pipes of their schedulers.
_OUTPUT = (("cron", "output"), ("cron", "wake"))

Select = Callable[[PurePosixPath], bool]


def is_persistent(path: PurePosixPath) -> bool:
    """Return whether a file of a home cannot be regenerated, by its path in the home."""
    inside_profile = path.parts[2:] if path.parts[0] == "profiles" else path.parts
    first = inside_profile[0] if inside_profile else ""
    return not (
        first in _REGENERABLE | _BACKUPS
        or first in _DERIVED
        or inside_profile[:2] in _OUTPUT
        or _DEPENDENCIES & {*path.parts}
        or path.name.endswith(_TRANSIENT)
    )


def text_of(path: Path) -> str:
    """Return the text of a file; "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def files_of(root: Path, select: Select = is_persistent) -> Iterator[PurePosixPath]:
    """Yield the selected files below a folder, sorted. Symbolic links are skipped."""
    for folder, names, files in os.walk(root):
        names.sort()
        here = Path(folder)
        for name in sorted(files):
            path = PurePosixPath((here / name).relative_to(root).as_posix())
            if select(path) and stat.S_ISREG((here / name).lstat().st_mode):
                yield path


def pack(
    root: Path, target: Path, select: Select = is_persistent, more: Mapping[str, Path] | None = None
) -> int:
    """Write the selected files, and `more` under the given names, to a new private zip file.
    Returns the number of files. The file appears complete or not at all; raises UsageError if it
    exists."""
    if target.exists():
        raise UsageError(f"{target} already exists; choose another name.")
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}.draft")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file, TemporaryDirectory(dir=target.parent) as scratch:
            named = {str(path): root / path for path in files_of(root, select)}
            count, copy = 0, Path(scratch, "copy.db")
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, path in (named | dict(more or {})).items():
                    with suppress(FileNotFoundError):  # deleted since it was listed
                        archive.write(_packable(path, copy), name)
                        count += 1
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{target} cannot be written ({why}); choose another path.") from error
    finally:
        draft.unlink(missing_ok=True)
    return count


def _packable(path: Path, copy: Path) -> Path:
    """Return the file itself, or a consistent copy of a database, even while it is in use. A file
    that SQLite cannot read is packed as it is: it may still be repairable."""
    if path.suffix != _DATABASE:
        return path
    copy.unlink(missing_ok=True)
    try:
        copy_database(path, copy)
    except sqlite3.Error:
        return path
    return copy


def copy_database(source: Path, target: Path) -> None:
    """Copy a database in one transaction of the target, so that other connections see all of it or
    nothing."""
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)


def put_file(source: Path, target: Path) -> None:
    """Move a restored file to its final path. Raises ConfigError when that cannot be written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if target.suffix == _DATABASE and target.exists():
            copy_database(source, target)
        else:
            source.replace(target)
    except OSError as error:
        raise unwritable_error(target, error) from error


class PackedHome:
    """A zip file whose members all stay inside the target folder."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises NotFound, or UsageError when it is not such an archive."""
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
        except FileNotFoundError:
            raise NotFound(f"There is no file {path}; name an existing backup.") from None
        except (OSError, zipfile.BadZipFile) as error:
            raise UsageError(
                f"{path} is not a readable zip file ({error}); choose another file."
            ) from error
        files = [entry for entry in entries if not entry.is_dir()]
        self.names = tuple(PurePosixPath(entry.filename) for entry in files)
        for entry, name in zip(files, self.names, strict=True):
            is_link = stat.S_ISLNK(entry.external_attr >> 16)
            if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or is_link:
                raise UsageError(
                    f"{path} contains {entry.filename!r}, a path outside the archive; choose "
                    "another file."
                )

    def unpack(self, root: Path, select: Select = is_persistent) -> list[PurePosixPath]:
        """Extract the selected files into a folder that has none of them yet."""
        done = []
        with zipfile.ZipFile(self.path) as archive:
            for name in self.names:
                if not select(name):
                    continue
                target = root / name
                for parent in reversed((target, *target.parents)[1 : len(name.parts)]):
                    parent.mkdir(mode=0o700, exist_ok=True)
                descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file, archive.open(str(name)) as source:
                    while block := source.read(1 << 20):
                        file.write(block)
                done.append(name)
        return done


FOLDER = "_external"


class OutsideFile(Value):
    """The files outside the home that a backup takes."""

    # Paths relative to the user's home folder.
    files: tuple[str, ...] = ()
    # Skipped paths with the reason.
    left_out: tuple[str, ...] = ()


async def provider_paths(memory: MemoryService) -> tuple[Path, ...]:
    """Return the files that the memory provider adds to a backup. Starts the provider's plugin if
    it is not loaded yet."""
    if not memory.run.settings.memory.provider:
        return ()
    await memory.load_plugins()
    return memory.user_model.backup_paths()


class UserFiles:
    """The user's files that may be packed and restored: no files with credentials, no files that
    other programs execute or load, and no files of a Hermes home. A backup may come from a
    stranger, and a plugin names paths freely."""

    def __init__(self, user_home: Path, home: Home) -> None:
        self._user_home = user_home.resolve()
        self._home = home.root.resolve()
        self._places = Places(str(self._user_home), str(self._user_home), str(self._home))

    def at(self, name: str | PurePosixPath) -> Path:
        return self._user_home / name

    def outside(self, paths: Sequence[Path]) -> OutsideFile:
        """Return the files at these paths, including those in folders."""
        files: list[str] = []
        left_out: list[str] = []
        for path in paths:
            top = self._user_home / path.expanduser()
            below = [top / name for name in files_of(top, lambda _: True)] if top.is_dir() else []
            for found in [top] if top.is_file() else below:
                if why := self.fault(found):
                    left_out.append(f"{found} {why}")
                else:
                    files.append(found.resolve().relative_to(self._user_home).as_posix())
        return OutsideFile(files=tuple(dict.fromkeys(files)), left_out=tuple(left_out))

    def fault(self, path: Path) -> str:
        """Return why this file is not taken, or ""."""
        real = path.resolve()
        if not real.is_relative_to(self._user_home) or real == self._user_home:
            return f"is outside {self._user_home}"
        if real.is_relative_to(self._home) or self._places.own_state(str(real)):
            return "belongs to a Hermes home"
        if self._places.secret(str(real)):
            return "contains credentials"
        return self._places.runs_later(str(real))

    def put_back(self, source: Path) -> tuple[str, ...]:
        """Move all files below `source` to their original paths. Raises HermesError before moving
        anything if one is not permitted."""
        names = tuple(str(name) for name in files_of(source, lambda _: True))
        self.check(names)
        for name in names:
            put_file(source / name, self.at(name))
        return names

    def check(self, names: Sequence[str]) -> None:
        for name in names:
            if why := self.fault(self.at(name)):
                raise HermesError(f"{self.at(name)} {why}; nothing was restored.")
