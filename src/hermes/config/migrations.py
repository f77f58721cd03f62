"""Migrates settings of older versions and translates deprecated keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject, JsonValue, Value
from hermes.config.schema import KeyPath
from hermes.core.errors import ConfigError

VERSION_KEY = "_config_version"


class Migration(Value):
    """The step to version `to`. `change` may modify its document. It keeps unknown keys and leaves
    a document of the new version unchanged."""

    to: int
    change: Callable[[JsonObject], JsonObject]


# In order of `to`, without gaps, from 2 upward.
MIGRATIONS: tuple[Migration, ...] = ()


def newest_version(steps: Sequence[Migration] = MIGRATIONS) -> int:
    return steps[-1].to if steps else 1


def version_of(document: JsonObject) -> int:
    """Return the version of a document; 1 if it names none."""
    version = document.get(VERSION_KEY)
    if isinstance(version, int) and not isinstance(version, bool) and version > 0:
        return version
    return 1


def migrate_document(document: JsonObject, steps: Sequence[Migration] = MIGRATIONS) -> JsonObject:
    """Return a copy of the document in the newest version; raise ConfigError if a step fails on
    it."""
    version = version_of(document)
    if version >= newest_version(steps):
        return document
    result = decode(JsonObject, encode(document))
    for step in steps:
        if step.to <= version:
            continue
        try:
            result = step.change(result)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"config.yaml cannot be migrated to version {step.to} ({error!r}); "
                "correct it by hand."
            ) from error
    return {**result, VERSION_KEY: newest_version(steps)}


class Removed(Value):
    """Marks a key to be removed."""


REMOVED = Removed()
Changes = dict[KeyPath, JsonValue]


def value_at(data: JsonObject, path: KeyPath) -> JsonValue:
    """Return the value of a key; REMOVED if there is none."""
    value: JsonValue = data
    for name in path:
        value = value.get(name, REMOVED) if isinstance(value, dict) else REMOVED
    return value


def changes_between(old: JsonObject, new: JsonObject, before: KeyPath = ()) -> Changes:
    """Return the keys to set or remove (REMOVED) that turn `old` into `new`."""
    changes: Changes = {}
    for name in {**old, **new}:
        path = (*before, name)
        was, becomes = old.get(name, REMOVED), new.get(name, REMOVED)
        if isinstance(was, dict) and isinstance(becomes, dict):
            changes.update(changes_between(was, becomes, path))
        elif was != becomes or type(was) is not type(becomes):
            changes[path] = becomes
    return changes


_MODES = {
    "chat": "chat_completions",
    "openai": "chat_completions",
    "responses": "codex_responses",
    "messages": "anthropic_messages",
    "anthropic": "anthropic_messages",
}
# Deprecated names of endpoint settings.
_NAMES = {"api": "base_url", "url": "base_url", "transport": "api_mode", "model": "default_model"}

_SUMMARY = "summary_"

_RETENTION = {
    "auto_prune": "mode",
    "retention_days": "days",
    "min_interval_hours": "min_interval_hours",
}


# Old keys that still work, and where their values belong now.
LEGACY_KEYS = {
    "custom_providers": "providers",
    "fallback_model": "fallback_providers",
    "compression.summary_model": "auxiliary.compression.model",
    "compression.summary_provider": "auxiliary.compression.provider",
    "compression.summary_base_url": "auxiliary.compression.base_url",
}


def find_legacy(data: JsonObject) -> list[tuple[str, str]]:
    """Return the old keys in the data, each with its current key."""

    def is_set(key: str) -> bool:
        value: JsonValue = data
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value not in (None, "")

    return [(old, new) for old, new in LEGACY_KEYS.items() if is_set(old)]


def translate_legacy(data: JsonObject) -> JsonObject:
    """Return the settings under current keys; the same object if nothing changes. If both forms of
    a setting are present, the current one wins."""
    translated = dict(data)
    if isinstance(listed := translated.pop("custom_providers", None), list):
        translated["providers"] = {
            **_index_by_name(listed),
            **_mapping(translated.get("providers")),
        }
    elif listed is not None:
        translated["custom_providers"] = listed
    if isinstance(providers := translated.get("providers"), dict):
        translated["providers"] = {
            name: _translate_endpoint(held) for name, held in providers.items()
        }
    if (spare := translated.pop("fallback_model", None)) is not None:
        chain = translated.get("fallback_providers")
        translated["fallback_providers"] = [
            *(chain if isinstance(chain, list) else ()),
            {"model": spare} if isinstance(spare, str) else spare,
        ]
    if isinstance(sessions := translated.get("sessions"), dict):
        translated["sessions"] = _translate_sessions(sessions)
    if isinstance(compression := translated.get("compression"), dict):
        translated |= _translate_summaries(compression, _mapping(translated.get("auxiliary")))
    return translated if translated != data else data


def _translate_summaries(held: JsonObject, auxiliary: JsonObject) -> JsonObject:
    """Move `compression.summary_…` to `auxiliary.compression`."""
    renamed = ((key.removeprefix(_SUMMARY), value) for key, value in held.items()
               if key.startswith(_SUMMARY))  # fmt: skip
    settings = {key: value for key, value in renamed if value not in (None, "")}
    if not settings:
        return {}
    task = {**settings, **_mapping(auxiliary.get("compression"))}
    kept = {key: value for key, value in held.items() if not key.startswith(_SUMMARY)}
    return {"compression": kept, "auxiliary": {**auxiliary, "compression": task}}


def _index_by_name(listed: list[JsonValue]) -> JsonObject:
    """Index entries by name. `My Box` becomes `my-box`; an entry without a name is named after its
    position."""
    by_name: JsonObject = {}
    for position, entry in enumerate(listed, start=1):
        if isinstance(entry, dict):
            settings = {key: value for key, value in entry.items() if key != "name"}
            name = entry.get("name")
            plain = name.strip().lower() if isinstance(name, str) else ""
            by_name[re.sub(r"[^a-z0-9._-]+", "-", plain) or f"custom-{position}"] = settings
    return by_name


def _translate_endpoint(held: JsonValue) -> JsonValue:
    if not isinstance(held, dict):
        return held
    renamed = {_NAMES.get(key, key): value for key, value in held.items() if key in _NAMES}
    kept = {key: value for key, value in held.items() if key not in _NAMES}
    whole = {**renamed, **kept}
    if isinstance(mode := whole.get("api_mode"), str):
        whole["api_mode"] = _MODES.get(mode, mode)
    if isinstance(models := whole.get("models"), list):
        whole["models"] = {str(name): {} for name in models}
    return whole if whole != held else held


def _translate_sessions(held: JsonObject) -> JsonObject:
    """Move `auto_prune`, `retention_days` and `min_interval_hours` to `retention`."""
    kept = {key: value for key, value in held.items() if key not in _RETENTION}
    retention: JsonObject = {_RETENTION[key]: held[key] for key in _RETENTION if key in held}
    if "mode" in retention and isinstance(retention["mode"], bool):
        retention["mode"] = "prune" if retention["mode"] else "off"
    return (
        {**kept, "retention": {**retention, **_mapping(kept.get("retention"))}}
        if retention
        else held
    )


def _mapping(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
