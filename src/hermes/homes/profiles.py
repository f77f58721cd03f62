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
    Wanted,
    copy_database,
    files_of,
    is_persistent,
    pack,
)
from hermes.homes.backup import refuse_if_used, used_by
from hermes.skills.session_index import seeds_of

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


DEFAULT = "default"
DESCRIPTION = "description.txt"
MOST_DESCRIBED = 500
# What makes a profile behave like another one. Logins are left behind: a provider takes back a
# login that two programs renew.
_MANNERS = frozenset((".env", "SOUL.md", "config.yaml"))
_MANNER_FOLDERS = frozenset(("memories", "skills"))
_PAST = frozenset(("archive", "hermes.db", "logs", "profiles", "sessions", ".hermes_history"))
_LOGINS = frozenset(("auth.json",))
_OWN = frozenset(("active_profile", DESCRIPTION))


class ProfileInfo(Value):
    """`used_by` are the processes that work in it now."""

    name: str
    home: str
    description: str = ""
    active: bool = False
    model: str = ""
    provider: str = ""
    sessions: bool = False
    skills: int = 0
    used_by: tuple[str, ...] = ()


class Profiles:
    """Those of a root home. `reserved` are names that mean something else already."""

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
            description=_description(home),
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
        """A new profile: empty, or with the settings, secrets, memory and skills of another, or
        with `everything` of it but its past and its logins. Without `skills` it gets none of the
        other's, and none of those that come with the program."""
        target, words = self._new(name), _plain(description)
        source = profile_home(self._root, like) if like else None

        def wanted(path: PurePosixPath) -> bool:
            if not is_persistent(path) or (not skills and path.parts[0] == "skills"):
                return False
            return _is_present(path) if everything else _is_personal(path)

        with self._draft(target) as draft:
            if source is not None and source.root.is_dir():
                _copy(source.root, draft, wanted)
            if not skills:
                seeds_of(Home(draft)).opt(out=True)
            if words:
                replace_file(Home(draft), draft / DESCRIPTION, f"{words}\n".encode())
        return target

    def describe(self, name: str, text: str) -> None:
        """What it is for; empty takes the words away."""
        home, words = profile_home(self._root, name), _plain(text)
        if words:
            replace_file(home, home.root / DESCRIPTION, f"{words}\n".encode())
        else:
            (home.root / DESCRIPTION).unlink(missing_ok=True)

    def use(self, name: str) -> Home:
        """Whoever names no profile gets this one from now on."""
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
        """With all that is in it; ConfigError while somebody works there."""
        home = self._root_of(name)
        refuse_if_used(home)
        # From here on it is not found any more, however long removing takes.
        gone = home.root.with_name(f".{name}.{os.urandom(4).hex()}.gone")
        try:
            home.root.rename(gone)
            if self.active == name:
                self.use(DEFAULT)
            shutil.rmtree(gone)
        except OSError as error:
            raise unwritable_error(home.root, error) from error

    def export(self, name: str, target: Path) -> int:
        """One file without secrets; how many files are in it."""
        home = profile_home(self._root, name)

        def wanted(path: PurePosixPath) -> bool:
            return is_persistent(path) and path.parts[0] not in SECRET_FILES | {"profiles"}

        if not home.root.is_dir():
            raise NotFound(f"There is no home at {home.root} yet; nothing to export.")
        return pack(home.root, target, wanted)

    def import_archive(self, file: Path, name: str) -> Home:
        """A profile from an exported file; secrets in it are not taken."""
        packed, target = PackedHome(file), self._new(name)
        with self._draft(target) as draft:
            packed.unpack(draft, lambda path: is_persistent(path) and path.name not in SECRET_FILES)
        return target

    @contextmanager
    def _draft(self, target: Home) -> Iterator[Path]:
        """A folder to fill, which becomes the profile once it is whole."""
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
            raise UsageError(f"{name!r} means something else already; choose another name.")
        target = Home(self._root.profiles / name)
        if target.root.exists():
            raise UsageError(f"There is a profile {name!r} already; `hermes profile show {name}`.")
        return target

    def _root_of(self, name: str) -> Home:
        if name == DEFAULT:
            raise UsageError("The default profile is the home itself; it stays as it is.")
        return profile_home(self._root, name)


def _is_personal(path: PurePosixPath) -> bool:
    return str(path) in _MANNERS or path.parts[0] in _MANNER_FOLDERS


def _is_present(path: PurePosixPath) -> bool:
    return path.parts[0] not in _PAST | _LOGINS and str(path) not in _OWN


def _description(home: Home) -> str:
    try:
        return (home.root / DESCRIPTION).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _plain(description: str) -> str:
    """On one line."""
    words = " ".join(description.split())
    if len(words) > MOST_DESCRIBED:
        raise UsageError(f"A description has at most {MOST_DESCRIBED} characters.")
    return words


def _copy(source: Path, target: Path, wanted: Wanted) -> None:
    for place in files_of(source, wanted):
        (target / place.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        if place.suffix == ".db":
            copy_database(source / place, target / place)
        else:
            shutil.copy2(source / place, target / place)
