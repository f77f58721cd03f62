"""Loads the settings of a home. Precedence: command line, session, environment, config.yaml,
default. Each value can be explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.diagnostics import REFUSED_VALUE, UNREADABLE, Diagnostic, warning
from hermes.config.document import ConfigDocument, read_document
from hermes.config.environment import (
    MIN_MASKED_LENGTH,
    Secrets,
    is_secret_name,
    process_environment,
    read_env_file,
)
from hermes.config.home import Home
from hermes.config.layers import (
    FileReader,
    Layer,
    SettingSource,
    SourcedValue,
    VariablePlace,
    explicit_layer,
    suggest_keys,
    variable_layers,
)
from hermes.config.migrations import (
    MIGRATIONS,
    Migration,
    migrate_document,
    newest_version,
    translate_legacy,
    version_of,
)
from hermes.config.schema import (
    ANY_NAME,
    KeyPath,
    Setting,
    all_settings,
    field_of,
    find_setting,
    format_key,
    is_section,
    mapping_section,
    parse_key,
)
from hermes.config.settings import OVERRIDES, Settings
from hermes.core.errors import ConfigError, InvalidConfig, NotFound

DEFAULT = SettingSource(kind="default")


class Explanation(Value):
    """The value of a key with its source, and the values it overrides, strongest first."""

    setting: Setting
    value: Any
    source: SettingSource
    shadows: tuple[SourcedValue, ...]

    @property
    def key(self) -> str:
        return self.setting.key


class Config:
    """The settings and secrets of a run, with their sources."""

    def __init__(
        self,
        *,
        home: Home,
        layers: Sequence[Layer],
        secrets: Secrets,
        diagnostics: Iterable[Diagnostic],
    ) -> None:
        self.home = home
        self.secrets = secrets
        self.diagnostics = tuple(diagnostics)
        values = {path: found.value for layer in reversed(layers) for path, found in layer.items()}
        self.settings: Settings = _build_section(Settings, values)  # type: ignore[assignment]
        self._layers = tuple(layers)

    def explain(self, key: str) -> Explanation:
        """Explain where the value of a key comes from. Raise NotFound for an unknown key."""
        setting = _find_leaf(key)
        values = [layer[setting.path] for layer in self._layers if setting.path in layer]
        values.append(SourcedValue(value=setting.default, source=DEFAULT))
        return Explanation(
            setting=setting,
            value=values[0].value,
            source=values[0].source,
            shadows=tuple(values[1:]),
        )

    @property
    def is_valid(self) -> bool:
        """Whether the file can be read, and no setting without a safe default is wrong."""
        return all(each.kind not in (UNREADABLE, REFUSED_VALUE) for each in self.diagnostics)

    def refuse_invalid(self) -> None:
        """Raise InvalidConfig unless the settings are valid."""
        self._refuse(UNREADABLE, REFUSED_VALUE)

    def refuse_unreadable(self) -> None:
        """Raise InvalidConfig if config.yaml cannot be read."""
        self._refuse(UNREADABLE)

    def _refuse(self, *kinds: str) -> None:
        for finding in self.diagnostics:
            if finding.kind in kinds:
                raise InvalidConfig(f"{finding.text}; {finding.fix}.")

    def known_keys(self) -> tuple[str, ...]:
        """Return every key that has a value: the whole schema, and user-defined names."""
        chosen = (format_key(path) for layer in self._layers for path in layer)
        return tuple(dict.fromkeys((*_schema_keys(), *chosen)))

    def secret_values(self) -> frozenset[str]:
        """Return all configured secrets, from every source."""
        items = (item for layer in self._layers for item in layer.items())
        secrets: set[str] = set(self.secrets.values())
        for path, entry in items:
            setting = find_setting(Settings, path)
            if setting is not None and (setting.secret or is_secret_name(path[-1])):
                secrets.update(_strings(entry.value))
            elif isinstance(entry.value, dict):
                secrets.update(find_named_secrets(entry.value))
        return frozenset(value for value in secrets if len(value) >= MIN_MASKED_LENGTH)


@lru_cache(maxsize=1)
def _schema_keys() -> tuple[str, ...]:
    paths = (setting.path for setting in all_settings(Settings))
    return tuple(format_key(path) for path in paths if ANY_NAME not in path)


def load(
    home: Home,
    *,
    flags: Mapping[str, JsonValue] | None = None,
    session: Mapping[str, JsonValue] | None = None,
    env: Mapping[str, str] | None = None,
    use_file: bool = True,
    steps: Sequence[Migration] = MIGRATIONS,
) -> Config:
    """Load the settings of a home. `flags` and `session` are by key (`{"agent.max_turns": 5}`).
    Errors in files and variables become findings; only a bad flag raises."""
    process = process_environment() if env is None else env
    env_file = read_env_file(home)
    document = read_document(home) if use_file else ConfigDocument()
    findings = [*env_file.diagnostics, *document.diagnostics]
    variables = {**process, **env_file.variables}
    data = translate_legacy(_migrate(document.data, findings, steps))
    file_layer = FileReader(variables, findings).read(data) if data else {}
    variable_sources: list[tuple[VariablePlace, Mapping[str, str]]] = [
        ("environment", process),
        ("env_file", env_file.variables),
    ]
    strong = variable_layers((o for o in OVERRIDES if not o.weak), variable_sources, findings)
    weak = variable_layers((o for o in OVERRIDES if o.weak), variable_sources, findings)
    findings += _find_overrides(strong, file_layer)
    explicit = [explicit_layer("flag", flags or {}), explicit_layer("session", session or {})]
    return Config(
        home=home,
        layers=[*explicit, *strong, file_layer, *weak],
        secrets=Secrets(env_file.variables, process),
        diagnostics=findings,
    )


def _migrate(
    data: JsonObject, findings: list[Diagnostic], steps: Sequence[Migration]
) -> JsonObject:
    version, newest = version_of(data), newest_version(steps)
    if version > newest:
        message = f"config.yaml has version {version}; this program supports up to {newest}"
        findings.append(
            warning("version", message, fix="update Hermes; until then settings are not written")
        )
    elif data and version < newest:
        message = f"config.yaml has version {version}, the newest is {newest}; it still works"
        findings.append(warning("version", message, fix="run `hermes config migrate`"))
    try:
        return migrate_document(data, steps)
    except ConfigError as error:
        findings.append(
            warning("version", f"{error} Until then, Hermes uses it without the migration.")
        )
        return data


def _find_overrides(strong: Sequence[Layer], file_layer: Layer) -> list[Diagnostic]:
    """Find variables that override a setting of the file. A forgotten variable is the usual cause
    of "my setting does nothing"."""
    findings: dict[KeyPath, Diagnostic] = {}
    for layer in strong:
        for path, override in layer.items():
            if path in file_layer and file_layer[path].value != override.value:
                message = f"{override.source} overrides {format_key(path)} in config.yaml"
                fix = f"unset {override.source.name}, or `hermes config unset {format_key(path)}`"
                finding = warning("shadowed", message, fix=fix, key=format_key(path))
                findings.setdefault(path, finding)
    return list(findings.values())


@lru_cache(maxsize=512)
def _find_leaf(key: str) -> Setting:
    path = parse_key(key)
    setting = find_setting(Settings, path)
    if setting is not None and not is_section(setting.kind) and not mapping_section(setting.kind):
        return setting
    if setting is not None:
        raise NotFound(f"{key} is a section; see `hermes config show`.")
    near = suggest_keys(path)
    hint = f"; did you mean {near[0]}?" if near else "; see `hermes config show`."
    raise NotFound(f"Unknown setting {key}{hint}", near=near)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _strings(inner)]
    return [value] if isinstance(value, str) else []


def find_named_secrets(value: dict[str, Any]) -> Iterable[str]:
    """Yield the values under names that mark a secret, at any depth."""
    for name, inner in value.items():
        if is_secret_name(name) or name.lower() == "authorization":
            yield from _strings(inner)
            continue
        for item in inner if isinstance(inner, list) else (inner,):
            if isinstance(item, dict):
                yield from find_named_secrets(item)


def _build_section(section: type[Struct], values: Mapping[KeyPath, Any]) -> Struct:
    """Build a section from values by path, relative to the section."""
    fields: dict[str, Any] = {}
    for name, inner in _group(values).items():
        if () in inner:
            # A value for the whole key, even if it is a mapping.
            fields[name] = inner[()]
            continue
        setting = field_of(section, name)
        assert setting is not None
        if is_section(setting.kind):
            fields[name] = _build_section(setting.kind, inner)
        else:
            entry = mapping_section(setting.kind)
            assert entry is not None
            fields[name] = {own: _build_section(entry, each) for own, each in _group(inner).items()}
    return section(**fields)


def _group(values: Mapping[KeyPath, Any]) -> dict[str, dict[KeyPath, Any]]:
    """Return the values by the first name of their path."""
    groups: dict[str, dict[KeyPath, Any]] = {}
    for path, value in values.items():
        groups.setdefault(path[0], {})[path[1:]] = value
    return groups
