"""Prepares the start of a plugin: a verified copy of its files, settings, data folder and
sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import ConfigError
from hermes.plugins.cell import PluginSandbox, SandboxConfig, secrets_of
from hermes.plugins.contents import hash_of, read_contents, write_copy
from hermes.plugins.found import FoundPlugin
from hermes.plugins.manifest import PluginManifest
from hermes.plugins.rules import PluginRules


class PluginHost(Value):
    """Facts about the host. `variables` are those of the process and `.env`; `mask` redacts
    secrets in plugin logs."""

    home: str
    person: str
    variables: dict[str, str]
    version: str
    profile: str = "default"
    mask: Callable[[str], str] = str


class PluginLauncher:
    def __init__(self, rules: PluginRules, around: PluginHost) -> None:
        self._rules = rules
        self._around = around

    def sandbox(self, found: FoundPlugin) -> tuple[PluginSandbox, JsonObject]:
        birth = self.start_message(found)
        around, grants = self._around, self._rules.grants(found)
        assert found.manifest is not None
        setting = SandboxConfig(
            key=found.key,
            home=around.home,
            person=around.person,
            copy=str(birth["copy"]),
            data=str(birth["data_dir"]),
            log=str(Path(around.home, "logs", "plugins", f"{file_name(found.key)}.log")),
            grants=grants,
            wanted_env=found.manifest.variables,
            variables=around.variables,
            sandbox=self._rules.sandbox,
            means=self._rules.means,
            mask=around.mask,
        )
        return PluginSandbox(setting), birth

    def start_message(self, found: FoundPlugin) -> JsonObject:
        """Builds the start message with a copy of the approved files, since the originals may
        change. Bundled plugins run in place."""
        assert found.manifest is not None
        data = Path(self._around.home, "plugin-data", found.key)
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        copy = Path(found.place) if found.trusted else self._copy(found)
        grants = self._rules.grants(found)
        place = copy if found.trusted or found.module else copy / Path(found.place).name
        return {
            "place": str(place),
            "copy": str(copy),
            "module": found.module,
            "attribute": found.attribute,
            "manifest": _encode_manifest(found.manifest),
            "config": self._rules.entry(found).config,
            "data_dir": str(data),
            "profile": self._around.profile,
            "network": grants.network,
            "processes": grants.processes,
            "secrets": secrets_of(found.manifest.variables, grants, self._around.variables),
        }

    def _copy(self, found: FoundPlugin) -> Path:
        contents = read_contents(Path(found.place))
        now = hash_of(contents)
        if now != found.hash:
            raise ConfigError(
                f"Its files have changed; review them with `hermes plugins enable {found.key}`."
            )
        top = Path(found.place).name
        if Path(found.place).is_dir():
            contents = {f"{top}/{name}": data for name, data in contents.items()}
        folder = Path(
            self._around.home, "cache", "plugins", "copies", f"{file_name(found.key)}-{now}"
        )
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return write_copy(contents, folder)


def file_name(key: str) -> str:
    """Converts a key to a file name."""
    return key.replace("/", "--")


def _encode_manifest(manifest: PluginManifest) -> JsonObject:
    """Encodes all fields of the manifest."""
    fields: JsonObject = {name: getattr(manifest, name) for name in manifest.__struct_fields__}
    decoded: JsonObject = decode(dict, encode(fields))
    return decoded
