"""Translates deprecated settings to their current keys."""

from __future__ import annotations

import re

from hermes.codec.values import JsonObject, JsonValue

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


def translate_legacy(data: JsonObject) -> JsonObject:
    """The settings under current keys; the same object if nothing changes. If both forms of a
    setting are present, the current one wins."""
    found = dict(data)
    if isinstance(listed := found.pop("custom_providers", None), list):
        found["providers"] = {**_index_by_name(listed), **_mapping(found.get("providers"))}
    elif listed is not None:
        found["custom_providers"] = listed
    if isinstance(providers := found.get("providers"), dict):
        found["providers"] = {name: _translate_endpoint(held) for name, held in providers.items()}
    if (spare := found.pop("fallback_model", None)) is not None:
        chain = found.get("fallback_providers")
        found["fallback_providers"] = [
            *(chain if isinstance(chain, list) else ()),
            _fallback_entry(spare),
        ]
    if isinstance(sessions := found.get("sessions"), dict):
        found["sessions"] = _translate_sessions(sessions)
    if isinstance(compression := found.get("compression"), dict):
        found |= _translate_summaries(compression, _mapping(found.get("auxiliary")))
    return found if found != data else data


def _translate_summaries(held: JsonObject, auxiliary: JsonObject) -> JsonObject:
    """`compression.summary_…` moved to `auxiliary.compression`."""
    renamed = ((key.removeprefix(_SUMMARY), value) for key, value in held.items()
               if key.startswith(_SUMMARY))  # fmt: skip
    given = {key: value for key, value in renamed if value not in (None, "")}
    if not given:
        return {}
    task = {**given, **_mapping(auxiliary.get("compression"))}
    kept = {key: value for key, value in held.items() if not key.startswith(_SUMMARY)}
    return {"compression": kept, "auxiliary": {**auxiliary, "compression": task}}


def _index_by_name(listed: list[JsonValue]) -> JsonObject:
    """An entry without a name is named after its position."""
    found: JsonObject = {}
    for position, entry in enumerate(listed, start=1):
        if isinstance(entry, dict):
            held = {key: value for key, value in entry.items() if key != "name"}
            found[_plain(entry.get("name")) or f"custom-{position}"] = held
    return found


def _plain(name: JsonValue) -> str:
    """`My Box` becomes `my-box`."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.strip().lower()) if isinstance(name, str) else ""


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
    """`auto_prune`, `retention_days` and `min_interval_hours` moved to `retention`."""
    kept = {key: value for key, value in held.items() if key not in _RETENTION}
    given: JsonObject = {_RETENTION[key]: held[key] for key in _RETENTION if key in held}
    if "mode" in given and isinstance(given["mode"], bool):
        given["mode"] = "prune" if given["mode"] else "off"
    return {**kept, "retention": {**given, **_mapping(kept.get("retention"))}} if given else held


def _fallback_entry(given: JsonValue) -> JsonValue:
    return {"model": given} if isinstance(given, str) else given


def _mapping(given: JsonValue) -> JsonObject:
    return given if isinstance(given, dict) else {}
