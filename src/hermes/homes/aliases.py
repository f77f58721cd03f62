"""Commands of one's own that start Hermes in a profile: small scripts in `~/.local/bin`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

from hermes.config.home import unwritable_error
from hermes.core.errors import NotFound, UsageError

FOLDER = Path(".local") / "bin"
_MARK = "# A profile of Hermes: "
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Aliases:
    """Those of one person, whose folder `person` is; `search` is where their shell looks for
    commands, and `program` starts Hermes."""

    def __init__(self, person: Path, search: str, program: str) -> None:
        self.folder = person / FOLDER
        self._search = search
        self._program = program

    def of(self, profile: str) -> tuple[str, ...]:
        """The names under which a profile is started."""
        if not self.folder.is_dir():
            return ()
        return tuple(sorted(p.name for p in self.folder.iterdir() if _profile(p) == profile))

    def add(self, profile: str, root: Path, name: str) -> Path:
        """The script of that name. UsageError when something else is called so already: nothing
        that is not ours is ever replaced."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is no name for a command; use letters, digits, - and _.")
        script = self.folder / name
        there = script if script.exists() or script.is_symlink() else None
        other = there or shutil.which(name, path=self._search)
        if other is not None and not _profile(Path(other)):
            raise UsageError(f"{other} is called so already; choose another with --name.")
        words = (f"HERMES_HOME={shlex.quote(str(root))}", "exec", shlex.quote(self._program))
        body = f'#!/bin/sh\n{_MARK}{profile}\n{" ".join(words)} -p {profile} "$@"\n'
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = script.with_name(f".{name}.{os.urandom(4).hex()}")
            draft.write_text(body)
            draft.chmod(0o755)
            draft.replace(script)
        except OSError as error:
            raise unwritable_error(script, error) from error
        return script

    def remove(self, profile: str, name: str = "") -> tuple[str, ...]:
        """Those of a profile, or only this one; their names."""
        gone = tuple(each for each in self.of(profile) if name in ("", each))
        if not gone:
            raise NotFound(f"There is no command {name or profile!r} for the profile {profile!r}.")
        for each in gone:
            (self.folder / each).unlink(missing_ok=True)
        return gone

    def move(self, old: str, new: str, root: Path) -> tuple[str, ...]:
        """The commands of a profile that has another name now. One that was called as the profile
        is called as it is now, unless something else is; the names there are."""
        moved = []
        for name in self.of(old):
            try:
                wanted = self.add(new, root, new if name == old else name).name
            except UsageError:
                wanted = self.add(new, root, name).name
            if wanted != name:
                (self.folder / name).unlink(missing_ok=True)
            moved.append(wanted)
        return tuple(moved)

    @property
    def found(self) -> bool:
        """Whether the shell looks into the folder."""
        return str(self.folder) in self._search.split(os.pathsep)


def _profile(path: Path) -> str:
    """The profile that a script starts; empty for one that is not ours."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(200).split("\n")
    except (OSError, ValueError):
        return ""
    return head[1].removeprefix(_MARK) if len(head) > 1 and head[1].startswith(_MARK) else ""
