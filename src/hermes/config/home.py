"""Locates the home folder and its profiles, and replaces private files in it atomically."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hermes.codec import atomic_files as whole_files
from hermes.codec.file_lock import FileLock
from hermes.core.errors import ConfigError, NotFound, UsageError

PROFILE_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
PROFILES = "profiles"

# Folder of a session that holds the recorded exchanges with models.
TAPES = "tapes"


class Home:
    """The paths of one home. Nothing is created before `ensure_folder` or a write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.yaml"
        self.env_file = root / ".env"
        self.soul = root / "SOUL.md"
        self.logs = root / "logs"
        self.cache = root / "cache"
        self.locks = root / "locks"
        self.archive = root / "archive"
        self.sessions = root / "sessions"
        self.memories = root / "memories"
        self.people = root / "people"
        self.models = root / "models"
        self.profiles = root / PROFILES
        self.journal = root / "hermes.db"
        self.index = root / "index.db"
        self.history = root / ".hermes_history"
        self.active_profile = root / "active_profile"

    @property
    def profile(self) -> str:
        """The profile name of this home; "default" for a root home."""
        return self.root.name if self.root.parent.name == PROFILES else "default"

    def person_folder(self, person: str) -> Path:
        """The folder of somebody other than the owner, with their files. It exists afterwards."""
        name = hashlib.sha256(person.encode()).hexdigest()[:16]
        return self.ensure_folder(self.people / name)

    def ensure_folder(self, path: Path) -> Path:
        """Create a folder and its parents with mode 0700; raise ConfigError."""
        # `mkdir(parents=True)` would not make all of them private.
        missing: list[Path] = []
        try:
            for folder in (path, *path.parents):
                if folder.is_dir():
                    break
                missing.append(folder)
            for folder in reversed(missing):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise unwritable_error(path, error) from error
        return path

    def __repr__(self) -> str:
        return f"Home({str(self.root)!r})"


def unwritable_error(path: Path, error: OSError) -> ConfigError:
    why = (error.strerror or type(error).__name__).lower()
    return ConfigError(
        f"Cannot write to {path} ({why}); make it writable, or set HERMES_HOME to another folder."
    )


def resolve_home(
    env: Mapping[str, str], *, explicit: Path | None = None, profile: str | None = None
) -> Home:
    """Return the home of this run: `explicit`, else $HERMES_HOME, else ~/.hermes; in it `profile`,
    else $HERMES_PROFILE, else the profile that the file `active_profile` names."""
    start = explicit or _from_environment(env)
    name = profile or env.get("HERMES_PROFILE", "")
    if name:
        return profile_home(Home(_root_of(start)), name)
    home = Home(start)
    if home.profile != "default" or not (sticky := default_profile(home)):
        return home
    try:
        return profile_home(home, sticky)
    except (NotFound, UsageError) as error:
        raise ConfigError(
            f"{home.active_profile} names {sticky!r}, which is not a profile of this home; run "
            "`hermes -p default profile use default`."
        ) from error


def _from_environment(env: Mapping[str, str]) -> Path:
    if chosen := env.get("HERMES_HOME", ""):
        return Path(chosen).expanduser().absolute()
    folder = Path(env["HOME"] if env.get("HOME") else _account_folder()) / ".hermes"
    if "PYTEST_CURRENT_TEST" in env and folder == Path(_account_folder()) / ".hermes":
        raise ConfigError("A test must not open the real home; set HERMES_HOME.")
    return folder


def _account_folder() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container may run as a user id without an account
        return "/"


def root_home(home: Home) -> Home:
    """Return the home that contains this profile; itself if it is not a profile."""
    return Home(_root_of(home.root))


def _root_of(path: Path) -> Path:
    return path.parent.parent if path.parent.name == PROFILES else path


def default_profile(home: Home) -> str:
    """Return the profile used when none is named; "" for the root home."""
    try:
        return home.active_profile.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        return ""


def profile_home(root: Home, name: str) -> Home:
    """Return the home of a profile; raise UsageError, or NotFound with the existing names."""
    if name == "default":
        return root
    check_profile_name(name)
    folder = root.profiles / name
    if not folder.is_dir():
        known = profile_names(root)
        hint = f"; existing profiles: {', '.join(known)}" if known else ""
        raise NotFound(f"There is no profile {name!r} at {folder}{hint}.", near=known)
    return Home(folder)


def check_profile_name(name: str) -> None:
    if not re.fullmatch(PROFILE_NAME, name):
        raise UsageError(
            f"{name!r} is not a profile name; use up to 64 lower-case letters, digits, '-' and '_'."
        )


def profile_names(root: Home) -> tuple[str, ...]:
    try:
        folders = (entry.name for entry in root.profiles.iterdir() if entry.is_dir())
        return tuple(sorted(name for name in folders if not name.startswith(".")))
    except OSError:
        return ()


def replace_file(home: Home, path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file atomically with mode 0600; raise ConfigError. The target of a symbolic link is
    replaced, not the link. Without `durable` a power cut may lose the write."""
    home.ensure_folder(path.parent)
    try:
        whole_files.replace_file(path, data, mode=whole_files.PRIVATE, durable=durable)
    except OSError as error:
        raise unwritable_error(path, error) from error


@contextmanager
def config_lock(home: Home) -> Iterator[None]:
    """Hold the lock for writes to config.yaml and `.env`."""
    lock = FileLock(home.ensure_folder(home.locks) / "config.lock")
    try:
        lock.acquire()
    except OSError as error:
        raise unwritable_error(lock.path, error) from error
    try:
        yield
    finally:
        lock.close()
