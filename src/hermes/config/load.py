"""Loads the settings of a home. Precedence: command line, session, environment, config.yaml,
default. Each value can be explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.document import Document, read_document
from hermes.config.findings import Finding, warning
from hermes.config.home import Home
from hermes.config.layers import (
    FileReader,
    Held,
    Layer,
    Source,
    VariablePlace,
    given_layer,
    variable_layers,
)
from hermes.config.legacy import modernised
from hermes.config.migrate import MIGRATIONS, Migration, migrated, newest_version, version_of
from hermes.config.schema import (
    ANY_NAME,
    Path,
    Setting,
    all_settings,
    field_of,
    find_setting,
    format_key,
    is_section,
    parse_key,
    section_by_name,
)
from hermes.config.secrets import (
    SHORTEST_MASKED,
    Secrets,
    environment,
    looks_secret,
    read_env_file,
)
from hermes.config.settings import OVERRIDES, Settings
from hermes.core.errors import ConfigError, NotFound

DEFAULT = Source(kind="default")


class Explanation(Value):
    """The value of a key with its source, and the values it overrides, strongest first."""

    setting: Setting
    value: Any
    source: Source
    shadows: tuple[Held, ...]

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
        findings: Iterable[Finding],
    ) -> None:
        self.home = home
        self.secrets = secrets
        self.findings = tuple(findings)
        self.settings = _built(layers)
        self._layers = tuple(layers)

    def explain(self, key: str) -> Explanation:
        """Raises NotFound for an unknown key."""
        setting = _leaf(key)
        held = [layer[setting.path] for layer in self._layers if setting.path in layer]
        held.append(Held(value=setting.default, source=DEFAULT))
        return Explanation(
            setting=setting, value=held[0].value, source=held[0].source, shadows=tuple(held[1:])
        )

    def known_keys(self) -> tuple[str, ...]:
        """Every key that has a value: the whole schema, and user-defined names."""
        chosen = (format_key(path) for layer in self._layers for path in layer)
        return tuple(dict.fromkeys((*_schema_keys(), *chosen)))

    def secret_values(self) -> frozenset[str]:
        """All configured secrets, from every source."""
        items = (item for layer in self._layers for item in layer.items())
        found: set[str] = set(self.secrets.values())
        for path, entry in items:
            setting = find_setting(Settings, path)
            if setting is not None and (setting.secret or looks_secret(path[-1])):
                found.update(_texts(entry.value))
            elif isinstance(entry.value, dict):
                found.update(named_secrets(entry.value))
        return frozenset(value for value in found if len(value) >= SHORTEST_MASKED)


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
    """Loads the settings of a home. `flags` and `session` are by key (`{"agent.max_turns": 5}`).
    Errors in files and variables become findings; only a bad flag raises."""
    process = environment() if env is None else env
    env_file = read_env_file(home)
    document = read_document(home) if use_file else Document()
    findings = [*env_file.findings, *document.findings]
    variables = {**process, **env_file.variables}
    data = modernised(_current(document.data, findings, steps))
    file_layer = FileReader(variables, findings).read(data) if data else {}
    places: list[tuple[VariablePlace, Mapping[str, str]]] = [
        ("environment", process),
        ("env_file", env_file.variables),
    ]
    strong = variable_layers((o for o in OVERRIDES if not o.weak), places, findings)
    weak = variable_layers((o for o in OVERRIDES if o.weak), places, findings)
    findings += _shadowing(strong, file_layer)
    given = [given_layer("flag", flags or {}), given_layer("session", session or {})]
    return Config(
        home=home,
        layers=[*given, *strong, file_layer, *weak],
        secrets=Secrets(env_file.variables, process),
        findings=findings,
    )


def _current(data: JsonObject, findings: list[Finding], steps: Sequence[Migration]) -> JsonObject:
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
        return migrated(data, steps)
    except ConfigError as error:
        findings.append(warning("version", f"{error} It is used unmigrated."))
        return data


def _shadowing(strong: Sequence[Layer], file_layer: Layer) -> list[Finding]:
    """A forgotten variable is the usual cause of "my setting does nothing"."""
    found: dict[Path, Finding] = {}
    for layer in strong:
        for path, held in layer.items():
            if path in file_layer and file_layer[path].value != held.value:
                message = f"{held.source} overrides {format_key(path)} in config.yaml"
                fix = f"unset {held.source.name}, or `hermes config unset {format_key(path)}`"
                finding = warning("shadowed", message, fix=fix, key=format_key(path))
                found.setdefault(path, finding)
    return list(found.values())


@lru_cache(maxsize=512)
def _leaf(key: str) -> Setting:
    path = parse_key(key)
    setting = find_setting(Settings, path)
    if setting is not None and not is_section(setting.kind) and not section_by_name(setting.kind):
        return setting
    # Loaded only for an unknown key: difflib and the list of all keys are slow.
    from hermes.config.nearest import nearest_keys

    if setting is not None:
        raise NotFound(f"{key} is a section; see `hermes config show`.")
    near = nearest_keys(path)
    hint = f"; did you mean {near[0]}?" if near else "; see `hermes config show`."
    raise NotFound(f"Unknown setting {key}{hint}", near=near)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        return [text for held in value.values() for text in _texts(held)]
    return [value] if isinstance(value, str) else []


def named_secrets(value: dict[str, Any]) -> Iterable[str]:
    """Values under names that mark a secret, at any depth."""
    for name, held in value.items():
        if looks_secret(name) or name.lower() == "authorization":
            yield from _texts(held)
        elif isinstance(held, dict):
            yield from named_secrets(held)
        elif isinstance(held, list):
            yield from (
                text for item in held if isinstance(item, dict) for text in named_secrets(item)
            )


class _Leaf:
    """Distinguishes a value that is a mapping from a section."""

    def __init__(self, value: Any) -> None:
        self.value = value


_Tree = dict[str, Any]


def _built(layers: Sequence[Layer]) -> Settings:
    tree: _Tree = {}
    for layer in reversed(layers):
        for path, held in layer.items():
            node = tree
            for name in path[:-1]:
                node = node.setdefault(name, {})
            node[path[-1]] = _Leaf(held.value)
    return _section(Settings, tree) if tree else Settings()  # type: ignore[return-value]


def _section(section: type[Struct], tree: _Tree) -> Struct:
    return section(**{name: _value(section, name, node) for name, node in tree.items()})


def _value(section: type[Struct], name: str, node: Any) -> Any:
    if isinstance(node, _Leaf):
        return node.value
    setting = field_of(section, name)
    assert setting is not None
    kind = setting.kind
    if is_section(kind):
        return _section(kind, node)
    held = section_by_name(kind)
    assert held is not None
    return {own: _section(held, inner) for own, inner in node.items()}
