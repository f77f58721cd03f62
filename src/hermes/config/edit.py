"""Writes settings to config.yaml and variables to `.env`, keeping all other lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import JsonValue, Value
from hermes.config.environment import display_value, mask, set_variable
from hermes.config.home import Home, config_lock
from hermes.config.layers import suggest_keys
from hermes.config.migrations import MIGRATIONS, REMOVED, Changes, Migration, Removed, value_at
from hermes.config.schema import (
    KeyPath,
    Setting,
    WrongType,
    find_setting,
    format_key,
    from_data,
    from_text,
    guess_value,
    is_section,
    mapping_section,
    parse_key,
)
from hermes.config.settings import OVERRIDES, SHORT_FORMS, Settings
from hermes.core.errors import ConfigError, NotFound, UsageError

if TYPE_CHECKING:
    from hermes.config.settings_file import SettingsFile

_VARIABLE = r"[A-Z][A-Z0-9_]*"


class SettingChange(Value):
    """A change; `shown` is the new value with secrets masked, "" if it was removed."""

    key: str
    place: Literal["config.yaml", ".env"]
    shown: str = ""


def set_from_text(home: Home, key: str, text: str, *, force: bool = False) -> SettingChange:
    """Set a key to typed text. A name in capitals is a variable and goes to `.env`. An unknown key
    raises NotFound unless `force`."""
    if re.fullmatch(_VARIABLE, key):
        override = next((each for each in OVERRIDES if each.variable == key), None)
        if override is not None and key.startswith(("HERMES_", "TERMINAL_")):
            # Not for permanent settings.
            raise UsageError(
                f"{key} overrides {override.key} for one run; save the value with "
                f"`hermes config set {override.key} …`."
            )
        with config_lock(home):
            set_variable(home, key, text)
        return SettingChange(key=key, place=".env", shown=mask(text))
    path = _long_path(parse_key(key))
    setting = find_setting(Settings, path)
    if setting is None and not force:
        from hermes.config.unsupported import unsupported_reason

        if reason := unsupported_reason(path):
            raise UsageError(f"{format_key(path)} is not supported: {reason}.")
        near = suggest_keys(path)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise NotFound(
            f"Unknown setting {format_key(path)}{guess}; nothing was written. "
            "Use --force to write it anyway.",
            near=near,
        )
    value = _parse_value(setting, key, text) if setting is not None else guess_value(text)
    write_settings(home, {path: value})
    secret = setting is not None and setting.secret
    return SettingChange(
        key=format_key(path), place="config.yaml", shown=str(display_value(text, secret=secret))
    )


def unset(home: Home, key: str) -> SettingChange:
    """Remove a key from config.yaml or a variable from `.env`; raise NotFound if not set."""
    place: Literal["config.yaml", ".env"] = (
        ".env" if re.fullmatch(_VARIABLE, key) else "config.yaml"
    )
    path = parse_key(key)
    if not (home.root / place).exists():
        raise NotFound(f"{place} does not set {key}, so nothing was removed.")
    if place == ".env":
        with config_lock(home):
            if not set_variable(home, key, None):
                raise NotFound(f".env does not set {key}, so nothing was removed.")
        return SettingChange(key=key, place=place)
    with config_lock(home):
        file = _settings_file(home)
        if _long_path(path[:1]) == path and isinstance(file.data.get(path[0]), str):
            path = path[:1]
        if isinstance(value_at(file.data, path), Removed):
            raise NotFound(f"config.yaml does not set {key}, so nothing was removed.")
        file.write({path: REMOVED})
    return SettingChange(key=key, place=place)


def write_settings(home: Home, changes: Changes) -> None:
    """Set keys by path, and remove those whose value is REMOVED. Keep comments and other lines;
    raise ConfigError, before anything is written, for a value of the wrong type."""
    for path, value in changes.items():
        setting = find_setting(Settings, path)
        if setting is None or isinstance(value, Removed) or _is_group(setting):
            continue
        try:
            from_data(setting.kind, value)
        except WrongType as error:
            raise ConfigError(f"{format_key(path)} {error}, not {value!r}.") from error
    with config_lock(home):
        _settings_file(home).write(changes)


def allow_always(home: Home, effect: str) -> None:
    """Add an effect to `command_allowlist`."""
    with config_lock(home):
        file = _settings_file(home)
        known = file.data.get("command_allowlist")
        allowed = known if isinstance(known, list) else []
        if effect not in allowed:
            file.write({("command_allowlist",): [*allowed, effect]})


def migrate_file(home: Home, steps: Sequence[Migration] = MIGRATIONS) -> Changes:
    """Back up config.yaml and migrate it to the newest version; return the changes."""
    if not home.config.exists():
        return {}
    with config_lock(home):
        return _settings_file(home, steps).migrate()


def _settings_file(home: Home, steps: Sequence[Migration] = MIGRATIONS) -> SettingsFile:
    # The YAML library is slow to load, and most runs never write.
    from hermes.config.settings_file import SettingsFile

    return SettingsFile(home, steps)


def _long_path(path: KeyPath) -> KeyPath:
    inner = SHORT_FORMS.get(format_key(path))
    return (*path, inner) if inner else path


def _parse_value(setting: Setting, key: str, text: str) -> JsonValue:
    if _is_group(setting):
        raise ConfigError(f"{key} is a section; name a key below it.")
    try:
        value = from_text(setting.kind, text)
    except WrongType as error:
        value = display_value(text, secret=setting.secret)
        raise ConfigError(f"{key} {error}, not {value!r}; nothing was written.") from error
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_group(setting: Setting) -> bool:
    return is_section(setting.kind) or mapping_section(setting.kind) is not None
