"""Reads each source of settings (flags, session, variables, config.yaml) into values by key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal

from msgspec import Struct

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.diagnostics import REFUSED_VALUE, Diagnostic, fault, warning
from hermes.config.environment import TRUE_WORDS
from hermes.config.migrations import VERSION_KEY
from hermes.config.schema import (
    KeyPath,
    Setting,
    WrongType,
    all_settings,
    describe_type,
    field_of,
    fields_of,
    find_setting,
    format_key,
    from_data,
    from_text,
    is_section,
    mapping_section,
    parse_key,
)
from hermes.config.settings import SHORT_FORMS, Override, Settings
from hermes.core.errors import UsageError

# Option: the setting that it overrides for one run.
FLAGS = {
    "model": "model.default",
    "provider": "model.provider",
    "max_turns": "agent.max_turns",
    "record": "sessions.record",
    "checkpoints": "checkpoints.enabled",
    "accept_hooks": "hooks_auto_accept",
    "safe_mode": "plugins.safe_mode",
}


def flag_values(options: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Return the settings that these options override, by key."""
    values: dict[str, JsonValue] = {
        key: options[option] for option, key in FLAGS.items() if options.get(option)
    }
    if options.get("yolo"):
        values["approvals.mode"] = "off"
    if options.get("toolsets"):
        values["toolsets"] = [name.strip() for name in options["toolsets"].split(",")]
        values["platform_toolsets"] = {}
    return values


_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"

# Without valid values no session starts: the default would run commands on this machine although
# another one was asked for, or spend without the cap that was asked for.
REFUSED = ("terminal.backend", "budget")


def is_refused(key: str) -> bool:
    return any(key == each or key.startswith(f"{each}.") for each in REFUSED)


VariablePlace = Literal["environment", "env_file"]
SourceKind = Literal["flag", "session", "environment", "env_file", "file", "default"]


class SettingSource(Value):
    """The origin of a value; `name` is the variable, if any."""

    kind: SourceKind
    name: str = ""

    def __str__(self) -> str:
        labels = {
            "flag": "command line",
            "session": "this session",
            "environment": f"{self.name} in the environment",
            "env_file": f"{self.name} in .env",
            "file": "config.yaml",
            "default": "default",
        }
        return labels[self.kind]


class SourcedValue(Value):
    """A value with its origin."""

    value: Any
    source: SettingSource


Layer = dict[KeyPath, SourcedValue]


def explicit_layer(kind: Literal["flag", "session"], values: Mapping[str, JsonValue]) -> Layer:
    """Convert values from the command line or the session to a layer. Raise UsageError for a bad
    value."""
    source = SettingSource(kind=kind)
    layer: Layer = {}
    for key, value in values.items():
        setting = find_setting(Settings, parse_key(key))
        if setting is None:
            raise UsageError(f"Unknown setting {key}; `hermes config show` lists all.")
        try:
            layer[setting.path] = SourcedValue(value=from_data(setting.kind, value), source=source)
        except WrongType as error:
            raise UsageError(f"{key} {error}, not {value!r}.") from error
    return layer


def variable_layers(
    overrides: Iterable[Override],
    variable_sources: Sequence[tuple[VariablePlace, Mapping[str, str]]],
    findings: list[Diagnostic],
) -> list[Layer]:
    """Return one layer per variable and source, strongest first: several variables may set one
    key."""
    layers: list[Layer] = []
    for (kind, variables), override in product(variable_sources, overrides):
        text = variables.get(override.variable, "")
        is_off = override.when_true and text.strip().lower() not in TRUE_WORDS
        if not text or is_off:
            continue
        text = override.when_true or text
        source = SettingSource(kind=kind, name=override.variable)
        setting = find_setting(Settings, parse_key(override.key))
        assert setting is not None
        try:
            value = from_text(setting.kind, text)
        except WrongType as error:
            fix = f"unset {source.name}"
            if is_refused(override.key):
                message = f"{source}: {override.key} {error}, not {text!r}; no session starts"
                findings.append(fault(REFUSED_VALUE, message, fix=fix, key=override.key))
                continue
            message = f"{source} is ignored: {override.key} {error}, not {text!r}"
            findings.append(warning("wrong_type", message, fix=fix, key=override.key))
        else:
            layers.append({setting.path: SourcedValue(value=value, source=source)})
    return layers


class FileReader:
    """Reads the data of config.yaml into a layer. Bad values become findings."""

    def __init__(self, variables: Mapping[str, str], findings: list[Diagnostic]) -> None:
        self._variables = variables
        self._findings = findings
        self._layer: Layer = {}

    def read(self, data: JsonObject) -> Layer:
        known = {name: value for name, value in data.items() if name != VERSION_KEY}
        self._data: JsonValue = known
        self._read_section(Settings, known, ())
        return self._layer

    def _read_section(self, section: type[Struct], data: JsonObject, before: KeyPath) -> None:
        for name, value in data.items():
            path = (*before, name)
            if (setting := field_of(section, name)) is None:
                self._report_unknown(path, value)
            elif is_section(setting.kind):
                self._read_mapping(setting.kind, _long_form(path, value), path)
            elif (inner_section := mapping_section(setting.kind)) is not None:
                for own, inner in self._entries(value, path):
                    self._read_mapping(inner_section, inner, (*path, own))
            else:
                self._read_value(setting, value, path)

    def _read_mapping(self, section: type[Struct], value: JsonValue, path: KeyPath) -> None:
        self._read_section(section, dict(self._entries(value, path)), path)

    def _entries(self, value: JsonValue, path: KeyPath) -> Iterable[tuple[str, JsonValue]]:
        if isinstance(value, dict):
            return value.items()
        if value is not None:  # `agent:` with nothing below it is allowed
            self._report_kind(path, "must be a mapping", value)
        return ()

    def _read_value(self, setting: Setting, value: JsonValue, path: KeyPath) -> None:
        resolved = expand_variables(value, self._variables)
        try:
            if isinstance(resolved, str) and resolved != value:
                result = from_text(setting.kind, resolved)
            else:
                result = from_data(setting.kind, resolved)
        except WrongType:
            self._report_kind(
                path, f"must be {describe_type(setting.kind)}", "***" if setting.secret else value
            )
        else:
            self._layer[path] = SourcedValue(value=result, source=SettingSource(kind="file"))

    def _report_kind(self, path: KeyPath, wanted: str, value: JsonValue) -> None:
        key, text = format_key(path), repr(value)
        text = text if len(text) <= 60 else text[:57] + "..."
        if is_refused(key) or any(each.startswith(f"{key}.") for each in REFUSED):
            message = f"config.yaml: {key} {wanted}, not {text}; no session starts"
            fix = f"correct it, or remove it with `hermes config unset {key}`"
            self._findings.append(fault(REFUSED_VALUE, message, fix=fix, key=key))
            return
        message = f"config.yaml: {key} {wanted}, not {text}; the default is used"
        fix = f"correct it, or remove it with `hermes config unset {key}`"
        self._findings.append(warning("wrong_type", message, fix=fix, key=key))

    def _report_unknown(self, path: KeyPath, value: JsonValue) -> None:
        from hermes.config.unsupported import unsupported_reason

        key = format_key(path)
        if reason := unsupported_reason(path):
            message = f"config.yaml: {key} has no effect: {reason}"
            fix = f"remove it with `hermes config unset {key}`"
            self._findings.append(warning("unsupported_key", message, fix=fix, key=key))
            return
        near = suggest_keys(path)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = f"config.yaml: unknown setting {key}{hint}"
        if is_refused(key) or (near and is_refused(near[0])):
            rename = f"rename it to {near[0]}, or " if near else ""
            fix = f"{rename}remove it with `hermes config unset {key}`"
            message += " No session starts" if hint else "; no session starts"
            self._findings.append(fault(REFUSED_VALUE, message, fix=fix, key=key))
            return
        fix = self._advice(key, near[0]) if near else f"`hermes config unset {key}` removes it"
        self._findings.append(warning("unknown_key", message, fix=fix, key=key))

    def _advice(self, key: str, near: str) -> str:
        """Return what to do with an unknown key that resembles a known one. Renaming would make a
        second entry if that one is in the file, too."""
        setting, value = find_setting(Settings, parse_key(near)), self._data
        for name in parse_key(near):
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return f"rename it to {near}"
        if setting is not None and is_section(setting.kind):
            return f"move its settings below {near}, which is in the file, too"
        return f"`hermes config unset {key}` removes it; {near} is in the file, too"


def _long_form(path: KeyPath, value: JsonValue) -> JsonValue:
    short = SHORT_FORMS.get(format_key(path))
    return {short: value} if short and isinstance(value, str | int | float) else value


def expand_variables(value: JsonValue, variables: Mapping[str, str]) -> JsonValue:
    """Replace `${NAME}` in strings; a variable without a value stays as written."""
    if isinstance(value, str):
        if "${" not in value:
            return value
        return re.sub(_VARIABLE, lambda found: variables.get(found[1]) or found[0], value)
    if isinstance(value, list):
        return [expand_variables(item, variables) for item in value]
    if isinstance(value, dict):
        return {name: expand_variables(item, variables) for name, item in value.items()}
    return value


def suggest_keys(path: KeyPath) -> tuple[str, ...]:
    """Return the most similar keys: first those of the same section, then the same name in another
    section, then any similar key. Slow: the list of all keys is built."""
    section = find_setting(Settings, path[:-1])
    kind: Any = Settings if len(path) == 1 else section.kind if section else None
    beside = suggest_names(path[-1], fields_of(kind) if is_section(kind) else ())
    here = tuple(format_key((*path[:-1], name)) for name in beside)
    keys = [setting.key for setting in all_settings(Settings)]
    same = tuple(key for key in keys if key.rpartition(".")[2] == path[-1])
    return tuple(dict.fromkeys(here + same + suggest_names(format_key(path), keys)))[:3]


def suggest_names(word: str, among: Iterable[str]) -> tuple[str, ...]:
    """Return the most similar names, best first; empty if none is similar."""
    # Loaded only for an unknown name.
    import difflib

    return tuple(difflib.get_close_matches(word, list(among), n=3, cutoff=0.6))
