"""Files that a memory provider keeps outside of the home: which belong to a backup, and how they
come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.config.home import Home, unwritable_error
from hermes.core.errors import HermesError
from hermes.homes.archives import copy_database, files_of
from hermes.policy.places.places import Places

if TYPE_CHECKING:
    from hermes.memory.service import MemoryService

FOLDER = "_external"


class OutsideFile(Value):
    """`files` are named from the person's folder on; `left_out` says which paths are not taken,
    and why."""

    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


async def provider_paths(memory: MemoryService) -> tuple[Path, ...]:
    """What the provider that is chosen wants to be kept. A plugin is started to be asked, if it is
    not known yet."""
    if not memory.run.settings.memory.provider:
        return ()
    await memory.load_plugins()
    return memory.user_model.backup_paths()


class UserFiles:
    """The files of a person, as far as they may be packed and put back: none that hold keys, none
    that other programs run or obey, none of a home of ours. A backup may come from a stranger, and
    a plugin may name what it wants."""

    def __init__(self, person: Path, home: Home) -> None:
        self._person = person.resolve()
        self._home = home.root.resolve()
        self._places = Places(str(self._person), str(self._person), str(self._home))

    def at(self, name: str | PurePosixPath) -> Path:
        return self._person / name

    def outside(self, paths: Sequence[Path]) -> OutsideFile:
        """The files at these paths, with those below folders."""
        files: list[str] = []
        left_out: list[str] = []
        for path in paths:
            for found in _files_at(self._person / path.expanduser()):
                if why := self.fault(found):
                    left_out.append(f"{found} {why}")
                else:
                    name = found.resolve().relative_to(self._person).as_posix()
                    files.append(name)
        return OutsideFile(files=tuple(dict.fromkeys(files)), left_out=tuple(left_out))

    def fault(self, path: Path) -> str:
        """Why this file is not taken, or ""."""
        real = path.resolve()
        if not real.is_relative_to(self._person) or real == self._person:
            return f"is outside of {self._person}"
        if real.is_relative_to(self._home) or self._places.own_state(str(real)):
            return "belongs to a home of Hermes"
        if self._places.secret(str(real)):
            return "holds credentials"
        return self._places.runs_later(str(real))

    def put_back(self, source: Path) -> tuple[str, ...]:
        """Move all files below `source` to where they were; HermesError before the first, if one
        may not go there."""
        names = tuple(str(name) for name in files_of(source, lambda _: True))
        self.check(names)
        for name in names:
            target = self.at(name)
            try:
                target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                if target.suffix == ".db" and target.exists():
                    copy_database(source / name, target)
                else:
                    (source / name).replace(target)
            except OSError as error:
                raise unwritable_error(target, error) from error
        return names

    def check(self, names: Sequence[str]) -> None:
        for name in names:
            if why := self.fault(self.at(name)):
                raise HermesError(f"{self.at(name)} {why}; nothing was restored.")


def _files_at(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (path / name for name in files_of(path, lambda _: True))
    elif path.is_file():
        yield path
