"""Profiles: separate settings, keys and history under one install."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from hermes.codec.values import Value
from hermes.config.home import (
    Home,
    check_profile_name,
    default_profile,
    profile_home,
    profile_names,
    replace_file,
    unwritable_error,
)
from hermes.config.load import load
from hermes.core.errors import NotFound, UsageError
from hermes.homes.archive_files import (
    SECRET_FILES,
    PackedHome,
    copy_database,
    files_of,
    is_persistent,
    pack,
    text_of,
)
from hermes.homes.backup import refuse_if_used, used_by
from hermes.skills.session_index import seeds_of

FOLDER = Path(".local") / "bin"
_MARK = "# A profile of Hermes: "
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Aliases:
    """Commands that start a profile. `search` is the user's PATH; `program` starts Hermes."""

    def __init__(self, user_home: Path, search: str, program: str) -> None:
        self.folder = user_home / FOLDER
        self._search = search
        self._program = program

    def of(self, profile: str) -> tuple[str, ...]:
        """Return the commands that start a profile."""
        if not self.folder.is_dir():
            return ()
        return tuple(sorted(p.name for p in self.folder.iterdir() if _profile(p) == profile))

    def add(self, profile: str, root: Path, name: str) -> Path:
        """Create the script. Raises UsageError when another command has this name: only scripts of
        Hermes are replaced."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is not a valid command name; use letters, digits, - and _.")
        script = self.folder / name
        existing = script if script.exists() or script.is_symlink() else None
        other = existing or shutil.which(name, path=self._search)
        if other is not None and not _profile(Path(other)):
            raise UsageError(
                f"The command {name} exists already ({other}); choose another name with --name."
            )
        start = (f"HERMES_HOME={shlex.quote(str(root))}", "exec", shlex.quote(self._program))
        body = f'#!/bin/sh\n{_MARK}{profile}\n{" ".join(start)} -p {profile} "$@"\n'
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
        """Remove all commands of a profile, or only this one; returns their names."""
        removed = tuple(each for each in self.of(profile) if name in ("", each))
        if not removed:
            raise NotFound(f"There is no command {name or profile!r} for the profile {profile!r}.")
        for each in removed:
            (self.folder / each).unlink(missing_ok=True)
        return removed

    def move(self, old: str, new: str, root: Path) -> tuple[str, ...]:
        """Update the commands of a renamed profile and return their names. A command with the old
        profile name gets the new name unless that is taken."""
        moved = []
        for name in self.of(old):
            try:
                added = self.add(new, root, new if name == old else name).name
            except UsageError:
                added = self.add(new, root, name).name
            if added != name:
                (self.folder / name).unlink(missing_ok=True)
            moved.append(added)
        return tuple(moved)

    @property
    def is_in_path(self) -> bool:
        """Whether the folder is in PATH."""
        return str(self.folder) in self._search.split(os.pathsep)


def _profile(path: Path) -> str:
    """Return the profile that a script starts; "" for a script that is not from Hermes."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.read(200).split("\n")
    except (OSError, ValueError):
        return ""
    return head[1].removeprefix(_MARK) if len(head) > 1 and head[1].startswith(_MARK) else ""


DEFAULT = "default"
DESCRIPTION = "description.txt"
MAX_DESCRIPTION_CHARS = 500
# Files that define how a profile behaves. Logins are not copied: providers revoke a login that
# two programs refresh.
_BEHAVIOUR_FILES = frozenset((".env", "SOUL.md", "config.yaml"))
_BEHAVIOUR_FOLDERS = frozenset(("memories", "skills"))
_HISTORY = frozenset(("archive", "hermes.db", "logs", "profiles", "sessions", ".hermes_history"))
_LOGINS = frozenset(("auth.json",))
_PROFILE_FILES = frozenset(("active_profile", DESCRIPTION))


class ProfileInfo(Value):
    """A profile as `hermes profile` lists it."""

    name: str
    home: str
    description: str = ""
    active: bool = False
    model: str = ""
    provider: str = ""
    sessions: bool = False
    skills: int = 0
    # The processes that use it now.
    used_by: tuple[str, ...] = ()


class Profiles:
    """The profiles of a root home. `reserved` names cannot be used."""

    def __init__(self, root: Home, reserved: Iterable[str] = ()) -> None:
        self._root = root
        self._reserved = {DEFAULT, "hermes", *reserved}

    @property
    def active(self) -> str:
        return default_profile(self._root) or DEFAULT

    def names(self) -> tuple[str, ...]:
        return (DEFAULT, *profile_names(self._root))

    def info(self, name: str) -> ProfileInfo:
        home = profile_home(self._root, name)
        model = load(home, env={}).settings.model
        skills = home.root / "skills"
        return ProfileInfo(
            name=name,
            home=str(home.root),
            description=text_of(home.root / DESCRIPTION),
            active=name == self.active,
            model=model.default,
            provider=model.provider,
            sessions=home.journal.exists(),
            skills=sum(1 for _ in skills.rglob("SKILL.md")) if skills.is_dir() else 0,
            used_by=used_by(home),
        )

    def create(
        self,
        name: str,
        *,
        like: str = "",
        everything: bool = False,
        skills: bool = True,
        description: str = "",
    ) -> Home:
        """Create a profile: empty, or with the settings, secrets, memory and skills of `like`, or
        with `everything` except its history and logins. Without `skills`, it gets neither the other
        profile's skills nor the shipped ones."""
        target, about = self._new(name), _plain(description)
        source = profile_home(self._root, like) if like else None

        def select(path: PurePosixPath) -> bool:
            if not is_persistent(path) or (not skills and path.parts[0] == "skills"):
                return False
            if everything:
                return path.parts[0] not in _HISTORY | _LOGINS and str(path) not in _PROFILE_FILES
            return str(path) in _BEHAVIOUR_FILES or path.parts[0] in _BEHAVIOUR_FOLDERS

        with self._draft(target) as draft:
            if source is not None and source.root.is_dir():
                for path in files_of(source.root, select):
                    (draft / path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
                    copy = copy_database if path.suffix == ".db" else shutil.copy2
                    copy(source.root / path, draft / path)
            if not skills:
                seeds_of(Home(draft)).opt(out=True)
            if about:
                replace_file(Home(draft), draft / DESCRIPTION, f"{about}\n".encode())
        return target

    def describe(self, name: str, text: str) -> None:
        """Set the description; an empty text removes it."""
        home, about = profile_home(self._root, name), _plain(text)
        if about:
            replace_file(home, home.root / DESCRIPTION, f"{about}\n".encode())
        else:
            (home.root / DESCRIPTION).unlink(missing_ok=True)

    def use(self, name: str) -> Home:
        """Make this the default profile."""
        home = profile_home(self._root, name)
        if name == DEFAULT:
            self._root.active_profile.unlink(missing_ok=True)
        else:
            replace_file(self._root, self._root.active_profile, f"{name}\n".encode())
        return home

    def rename(self, old: str, new: str) -> Home:
        home, target = self._root_of(old), self._new(new)
        refuse_if_used(home)
        was_active = self.active == old
        try:
            home.root.rename(target.root)
        except OSError as error:
            raise unwritable_error(target.root, error) from error
        if was_active:
            self.use(new)
        return target

    def delete(self, name: str) -> None:
        """Delete a profile with all its content. Raises ConfigError while it is in use."""
        home = self._root_of(name)
        refuse_if_used(home)
        # After the rename the profile is gone, however long the removal takes.
        gone = home.root.with_name(f".{name}.{os.urandom(4).hex()}.gone")
        try:
            home.root.rename(gone)
            if self.active == name:
                self.use(DEFAULT)
            shutil.rmtree(gone)
        except OSError as error:
            raise unwritable_error(home.root, error) from error

    def export(self, name: str, target: Path) -> int:
        """Write one file without secrets; returns the number of files in it."""
        home = profile_home(self._root, name)

        def select(path: PurePosixPath) -> bool:
            return is_persistent(path) and path.parts[0] not in SECRET_FILES | {"profiles"}

        if not home.root.is_dir():
            raise NotFound(f"There is no home at {home.root} yet, so there is nothing to export.")
        return pack(home.root, target, select)

    def import_archive(self, file: Path, name: str) -> Home:
        """Create a profile from an exported file, without the secrets in it."""
        packed, target = PackedHome(file), self._new(name)
        with self._draft(target) as draft:
            packed.unpack(draft, lambda path: is_persistent(path) and path.name not in SECRET_FILES)
        return target

    @contextmanager
    def _draft(self, target: Home) -> Iterator[Path]:
        """Create a temporary folder that becomes the profile once it is complete."""
        self._root.ensure_folder(self._root.profiles)
        draft = target.root.with_name(f".{target.root.name}.{os.urandom(4).hex()}.draft")
        try:
            draft.mkdir(mode=0o700)
            yield draft
            draft.rename(target.root)
        except OSError as error:
            raise unwritable_error(target.root, error) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _new(self, name: str) -> Home:
        check_profile_name(name)
        if name in self._reserved:
            raise UsageError(f"{name!r} is reserved; choose another name.")
        target = Home(self._root.profiles / name)
        if target.root.exists():
            raise UsageError(
                f"The profile {name!r} already exists; see `hermes profile show {name}`."
            )
        return target

    def _root_of(self, name: str) -> Home:
        if name == DEFAULT:
            raise UsageError(
                "The default profile is the home itself and cannot be changed; name another."
            )
        return profile_home(self._root, name)


def _plain(description: str) -> str:
    """Return the description on one line. Raises UsageError when it is too long."""
    line = " ".join(description.split())
    if len(line) > MAX_DESCRIPTION_CHARS:
        raise UsageError(
            f"The description has more than {MAX_DESCRIPTION_CHARS} characters; shorten it."
        )
    return line
