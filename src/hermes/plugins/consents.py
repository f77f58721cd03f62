"""Stores which plugins, with which content hash, a person approved."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.core.errors import ConfigError
from hermes.plugins.found import FoundPlugin


class Consent(Value):
    """Approval of one plugin at this hash."""

    hash: str
    source: str
    at: float = 0


class _ConsentFile(Value):
    plugins: dict[str, Consent] = {}
    projects: dict[str, str] = {}


class ConsentStore:
    """Two files in the home: plugins by key, project folders by path. An unreadable file counts
    as no approval."""

    def __init__(self, home: Path) -> None:
        self._plugins = home / "plugin-consents.json"
        self._projects = home / "trusted_projects.json"

    def hash_of(self, found: FoundPlugin) -> str:
        """Returns the approved hash or "". Approvals of project plugins are per project."""
        if found.source == "project":
            return self._read(self._projects).projects.get(found.place, "")
        held = self._read(self._plugins).plugins.get(found.key)
        return held.hash if held and held.source == found.source else ""

    def agree(self, found: FoundPlugin, hash: str, at: float = 0) -> None:
        if found.source == "project":
            projects = self._read(self._projects).projects
            self._write(self._projects, _ConsentFile(projects={**projects, found.place: hash}))
            return
        held = self._read(self._plugins).plugins
        consent = Consent(hash=hash, source=found.source, at=at)
        self._write(self._plugins, _ConsentFile(plugins={**held, found.key: consent}))

    def withdraw(self, key: str) -> None:
        held = self._read(self._plugins).plugins
        if key in held:
            left = {name: each for name, each in held.items() if name != key}
            self._write(self._plugins, _ConsentFile(plugins=left))

    def _read(self, file: Path) -> _ConsentFile:
        try:
            return decode(_ConsentFile, file.read_bytes())
        except (OSError, DecodeError):
            return _ConsentFile()

    def _write(self, file: Path, data: _ConsentFile) -> None:
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial.write_bytes(encode(data))
            partial.chmod(0o600)
            partial.replace(file)
        except OSError as error:
            raise ConfigError(f"Cannot write {file}: {error.strerror}.") from error
