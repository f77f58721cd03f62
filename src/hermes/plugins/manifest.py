"""Reads plugin manifests: `plugin.yaml`, or constants parsed without running the file."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Literal

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError

FILE = "plugin.yaml"
NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
VARIABLE = r"[A-Z][A-Z0-9_]{0,127}"
MOST_BYTES = 64_000
# Variables of the interpreter and the loader: they control what code runs.
_LOADER = ("LD_", "DYLD_", "PYTHON", "GCONV_", "MALLOC_")

Kind = Literal["standalone", "backend", "exclusive", "platform"]
Isolation = Literal["", "process", "in_process"]
GrantName = Literal["network", "llm", "processes"]


class PluginVariable(Value):
    """An environment variable that the plugin needs."""

    name: str
    description: str = ""
    url: str = ""
    secret: bool = True
    required: bool = True


class PluginManifest(Value, forbid_unknown_fields=True):
    """The manifest of a plugin. The plugin may register and use only what `provides_…` and
    `uses_tools` declare."""

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    homepage: str = ""
    license: str = ""
    kind: Kind = "standalone"
    category: str = ""
    requires_env: tuple[PluginVariable, ...] = ()
    requires_hermes: str = ""
    requires_login: str = ""  # a required account
    opt_in: bool = False  # a bundled plugin that is off by default
    dependencies: tuple[str, ...] = ()
    provides_tools: tuple[str, ...] = ()
    provides_hooks: tuple[str, ...] = ()
    provides_commands: tuple[str, ...] = ()
    provides_skills: tuple[str, ...] = ()
    uses_tools: tuple[str, ...] = ()
    wants: tuple[GrantName, ...] = ()  # required grants, which only the user gives
    isolation: Isolation = ""

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.requires_env)


def read_manifest(file: Path) -> PluginManifest:
    """Read a manifest; raise ConfigError in one sentence."""
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file.name} cannot be read: {error.strerror}.") from error
    if len(raw) > MOST_BYTES:
        raise ConfigError(f"{file.name} is longer than {MOST_BYTES} bytes.")
    return validate_manifest(_yaml(raw, file.name))


def manifest_of_module(file: Path) -> PluginManifest:
    """Read a constant PLUGIN, or the one subclass of Plugin."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file.name} cannot be read as Python: {error}.") from error
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and "PLUGIN" in _targets(node):
            return validate_manifest(_literal(node.value, f"PLUGIN in {file.name}"))
    kinds = [
        each
        for each in tree.body
        if isinstance(each, ast.ClassDef)
        # `Plugin` or `api.Plugin`.
        and any(ast.unparse(base).rpartition(".")[2] == "Plugin" for base in each.bases)
    ]
    if len(kinds) != 1:
        raise ConfigError(
            f"{file.name} needs a PLUGIN constant or exactly one class derived from Plugin."
        )
    attributes = _constants(kinds[0])
    name = str(attributes.get("name", ""))
    return validate_manifest(
        {
            "name": name.replace(" ", "-").lower(),
            "description": str(attributes.get("description", "")),
            "version": str(attributes.get("version", "")),
            "provides_tools": [name],
        }
    )


def _constants(kind: ast.ClassDef) -> dict[str, Any]:
    """The attributes of a class that are constants, or properties that return one."""
    found: dict[str, Any] = {}
    for each in kind.body:
        if isinstance(each, ast.Assign | ast.AnnAssign) and isinstance(each.value, ast.Constant):
            found |= dict.fromkeys(_targets(each), each.value.value)
        elif isinstance(each, ast.FunctionDef) and each.decorator_list:
            end = each.body[-1]
            if isinstance(end, ast.Return) and isinstance(end.value, ast.Constant):
                found[each.name] = end.value.value
    return found


def validate_manifest(data: JsonObject) -> PluginManifest:
    if isinstance(names := data.get("requires_env"), list):
        asked = [{"name": each} if isinstance(each, str) else each for each in names]
        data = {**data, "requires_env": asked}
    try:
        manifest = convert(PluginManifest, data)
    except DecodeError as error:
        raise ConfigError(f"The manifest is not valid: {error}.") from error
    if not re.fullmatch(NAME, manifest.name):
        raise ConfigError(
            f"{manifest.name!r} is not a valid plugin name: use lower-case letters, digits, -, _."
        )
    for name in manifest.variables:
        if not re.fullmatch(VARIABLE, name) or name.startswith(_LOADER):
            raise ConfigError(f"A plugin must not request the variable {name!r}.")
    return manifest


def _yaml(raw: bytes, name: str) -> JsonObject:
    # Slow to load; only needed with plugins.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(raw.decode("utf-8"))
    except (YAMLError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise ConfigError(f"{name} is not YAML: {what}.") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{name} must consist of `key: value` lines.")
    # YAML reads 1.0 as a number.
    return {
        str(key): str(value) if key in ("version", "name") else value for key, value in data.items()
    }


def _literal(node: ast.expr | None, what: str) -> JsonObject:
    try:
        data = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ConfigError(f"{what} must be a literal without code.") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{what} must be a dict.")
    return {str(key): value for key, value in data.items()}


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [each.id for each in targets if isinstance(each, ast.Name)]
