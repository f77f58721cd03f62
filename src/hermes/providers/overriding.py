"""Applies the user's model settings to a profile."""

from __future__ import annotations

import msgspec

from hermes.codec.json import DecodeError, convert, plain
from hermes.codec.values import JsonObject
from hermes.core.errors import ConfigError
from hermes.providers.profile import ModelProfile

# Settings under `providers.<name>.models`, mapped to profile fields.
_SETTINGS = {
    "context_length": "window",
    "max_output_tokens": "max_output",
    "vision": "images",
    "tool_calls": "tool_calls",
}
_PRICES = {
    "price_input": "input",
    "price_output": "output",
    "price_cache_read": "cache_read",
    "price_cache_write": "cache_write",
}
# Settings of a model that do not concern the profile.
_IGNORED = ("timeout_seconds",)


def apply_overrides(profile: ModelProfile, overrides: JsonObject) -> ModelProfile:
    """Applies profile fields as they are, and settings of a model, where null and "" mean unset."""
    if not overrides:
        return profile
    changed = {**msgspec.structs.asdict(profile), **_fields(profile, overrides)}
    try:
        return convert(ModelProfile, changed)
    except DecodeError as error:
        raise ConfigError(f"A model setting is invalid: {error}.") from error


def _fields(profile: ModelProfile, overrides: JsonObject) -> JsonObject:
    fields: JsonObject = {}
    rates: JsonObject = {}
    for name, value in overrides.items():
        if name in ModelProfile.__struct_fields__ and name not in _SETTINGS:
            fields[name] = value
        elif name not in _IGNORED and value not in (None, ""):
            into = rates if name in _PRICES else fields
            into[_PRICES.get(name) or _SETTINGS.get(name, name)] = value
    if "extra" in fields and isinstance(fields["extra"], dict):
        fields["extra"] = {**profile.extra, **fields["extra"]}
    if rates:
        fields |= _price(profile, rates)
    return fields


def _price(profile: ModelProfile, rates: JsonObject) -> JsonObject:
    """The user's rates over the known ones, as a flat price for any prompt length."""
    known = plain(profile.price) if profile.price is not None else {}
    kept = {name: known[name] for name in _PRICES.values() if name in known}
    price = {"output": 0.0, "input": 0.0, **kept, **rates}
    return {"price": price, "price_source": "user_override", "included": False}
