"""Writes changes to config.yaml and migrates it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonObject, JsonValue
from hermes.config.files import replace_file
from hermes.config.home import Home
from hermes.config.migrate import (
    MIGRATIONS,
    VERSION_KEY,
    Changes,
    Migration,
    changes_between,
    migrate_document,
    newest_version,
    version_of,
)
from hermes.config.settings import SHORT_FORMS
from hermes.config.yaml_edit import apply_changes
from hermes.config.yaml_read import BadYaml, decode_text, parse_text
from hermes.core.errors import ConfigError


class SettingsFile:
    """The current file; raises ConfigError if it is invalid or of a newer version."""

    def __init__(self, home: Home, steps: Sequence[Migration] = MIGRATIONS) -> None:
        self._home = home
        self._steps = steps
        try:
            self._text = decode_text(home.config.read_bytes())
            self.data: JsonObject = parse_text(self._text)
        except FileNotFoundError:
            self._text, self.data = "", {}
        except BadYaml as error:
            raise ConfigError(
                f"config.yaml is invalid ({error}); fix it with `hermes config edit`."
            ) from error
        except OSError as error:
            raise ConfigError(f"Cannot read {home.config} ({error.strerror}).") from error
        if version_of(self.data) > newest_version(steps):
            raise ConfigError(
                f"config.yaml has version {version_of(self.data)}, newer than this program; "
                "update Hermes first."
            )

    def write(self, changes: Changes) -> None:
        """Applies the changes. A new file gets a version."""
        if not self.data:
            changes = {(VERSION_KEY,): newest_version(self._steps), **changes}
        try:
            fresh = apply_changes(self._text, {**self._long_forms(changes), **changes})
        except BadYaml as error:
            raise ConfigError(f"{self._home.config}: {error}.") from error
        if fresh != self._text:
            replace_file(self._home, self._home.config, fresh.encode())

    def migrate(self) -> Changes:
        """Backs up the file and migrates it to the newest version; returns the changes."""
        changes = (
            changes_between(self.data, migrate_document(self.data, self._steps))
            if self.data
            else {}
        )
        if changes:
            config = self._home.config
            backup = config.with_name(f"{config.name}.bak.{version_of(self.data)}")
            replace_file(self._home, backup, self._text.encode())
            self.write(changes)
        return changes

    def _long_forms(self, changes: Changes) -> Changes:
        """`model: NAME` must become a mapping before another key of `model` can be set."""
        found: Changes = {}
        for key, inner in SHORT_FORMS.items():
            path = tuple(key.split("."))
            value = self._at(path)
            is_inside = any(len(each) > len(path) and each[: len(path)] == path for each in changes)
            if isinstance(value, str | int | float) and is_inside:
                found[path] = {inner: value}
        return found

    def _at(self, path: tuple[str, ...]) -> JsonValue:
        found: JsonValue = self.data
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found
