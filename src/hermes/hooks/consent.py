"""Stores which programs a person allowed for which hook, with hashes of their files."""

from __future__ import annotations

import hashlib
import os
import shlex
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.core.errors import ConfigError

FILE = "shell-hooks-allowlist.json"


class AllowedHook(Value):
    """`files` maps the files that the command names to their SHA-256."""

    event: str
    command: str
    files: dict[str, str] = {}
    at: float = 0.0


class _List(Value):
    version: int = 1
    allowed: tuple[AllowedHook, ...] = ()


class HookAllowlist:
    """The allowlist file. It is reread every time, because other processes may change it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> tuple[AllowedHook, ...]:
        """Raises ConfigError when the file is invalid; nothing is allowed then."""
        try:
            return decode(_List, self._path.read_bytes()).allowed
        except FileNotFoundError:
            return ()
        except (DecodeError, OSError) as error:
            raise ConfigError(
                f"{self._path} is not valid ({error}); fix or remove it and allow hooks again."
            ) from error

    def find(self, event: str, command: str) -> AllowedHook | None:
        """Returns the entry, even if its files have changed."""
        for each in self.all():
            if (each.event, each.command) == (event, command):
                return each
        return None

    def allow(self, event: str, command: str, *, at: float) -> None:
        known = [each for each in self.all() if (each.event, each.command) != (event, command)]
        new = AllowedHook(event=event, command=command, files=hash_files(command), at=at)
        self._write((*known, new))

    def revoke(self, command: str) -> int:
        """Returns how many hooks were revoked."""
        known = self.all()
        kept = tuple(each for each in known if each.command != command)
        if len(kept) < len(known):
            self._write(kept)
        return len(known) - len(kept)

    def _write(self, allowed: tuple[AllowedHook, ...]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(file, "wb") as out:
            out.write(encode(replace(_List(), allowed=allowed)) + b"\n")
        new.replace(self._path)


def split_command(command: str) -> list[str]:
    """Splits a command without a shell. ConfigError for an open quote."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"The command {command!r} is not valid ({error}).") from error
    if not words:
        raise ConfigError("A hook has an empty command.")
    return [str(Path(word).expanduser()) if word.startswith("~") else word for word in words]


def hash_files(command: str) -> dict[str, str]:
    """Returns hashes of the files that the command names. Programs named without a path belong
    to the system."""
    found = {}
    for word in split_command(command):
        path = Path(word)
        if "/" in word and path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
