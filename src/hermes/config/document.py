"""Reads config.yaml. A JSON copy is cached, so that most starts need not load the YAML library."""

from __future__ import annotations

import time
from contextlib import suppress

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.diagnostics import UNREADABLE, Diagnostic, fault
from hermes.config.home import Home, replace_file
from hermes.config.schema import KeyPath, find_setting
from hermes.config.settings import Settings
from hermes.core.errors import ConfigError
from hermes.version import __version__

COPY_NAME = "config.json"
# Two writes within one tick of the file system's clock have the same time stamp, so a file that
# was just written is not cached yet.
SETTLED_NS = 50_000_000


class ConfigDocument(Value):
    """The content of config.yaml, with only its syntax checked."""

    data: JsonObject = {}
    diagnostics: tuple[Diagnostic, ...] = ()
    exists: bool = False


class CachedDocument(Value):
    stamp: str
    data: JsonObject


def read_document(home: Home) -> ConfigDocument:
    """Read config.yaml. This never raises: an unreadable file gives a finding and empty content."""
    try:
        info = home.config.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ConfigDocument()
    except OSError as error:
        return _invalid_document(home, error.strerror or "cannot be opened")
    version = f"{__version__}:{info.st_ino}:{info.st_mtime_ns}:{info.st_ctime_ns}"
    stamp = f"{version}:{info.st_size}"
    with suppress(OSError, DecodeError):
        copy = decode(CachedDocument, (home.cache / COPY_NAME).read_bytes())
        if copy.stamp == stamp:
            return ConfigDocument(data=copy.data, exists=True)
    # The YAML library takes as long to load as the rest of a start.
    from hermes.config.yaml_parser import BadYaml, parse_yaml

    try:
        data = parse_yaml(home.config.read_bytes())
    except OSError as error:
        return _invalid_document(home, error.strerror or "cannot be opened")
    except BadYaml as error:
        return _invalid_document(home, str(error))
    # A secret is not stored in a second file, and a read-only home still has settings.
    if time.time_ns() - info.st_mtime_ns > SETTLED_NS and not literal_secrets(data):
        with suppress(ConfigError):
            copy = CachedDocument(stamp=stamp, data=data)
            replace_file(home, home.cache / COPY_NAME, encode(copy), durable=False)
    return ConfigDocument(data=data, exists=True)


def _invalid_document(home: Home, why: str) -> ConfigDocument:
    unreadable = fault(
        UNREADABLE,
        f"{home.config} is not used: {why}",
        fix="fix it with `hermes config edit`, or start with --ignore-user-config",
    )
    return ConfigDocument(diagnostics=(unreadable,), exists=True)


def literal_secrets(data: JsonObject, before: KeyPath = ()) -> list[KeyPath]:
    """Return the keys of secrets that are written in config.yaml instead of `.env`."""
    keys: list[KeyPath] = []
    for name, value in data.items():
        path = (*before, name)
        setting = find_setting(Settings, path)
        if setting is not None and setting.secret:
            keys += [path] if _has_literal(value) else []
        elif isinstance(value, dict):
            keys += literal_secrets(value, path)
    return keys


def _has_literal(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(_has_literal(held) for held in value.values())
    return isinstance(value, str) and value != "" and not value.startswith("${")
