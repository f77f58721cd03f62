"""Maps the arguments of AIAgent to settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.codec.values import JsonObject

# Argument name: setting.
SETTINGS = {
    "model": "model.default",
    "provider": "model.provider",
    "api_mode": "model.api_mode",
    "base_url": "model.base_url",
    "api_key": "model.api_key",
    "max_tokens": "model.max_tokens",
    "service_tier": "agent.service_tier",
    "max_iterations": "agent.max_turns",
    "enabled_toolsets": "toolsets",
    "disabled_toolsets": "agent.disabled_toolsets",
    "providers_allowed": "provider_routing.only",
    "providers_ignored": "provider_routing.ignore",
    "providers_order": "provider_routing.order",
    "provider_sort": "provider_routing.sort",
    "provider_require_parameters": "provider_routing.require_parameters",
    "provider_data_collection": "provider_routing.data_collection",
    "checkpoints_enabled": "checkpoints.enabled",
    "checkpoint_max_snapshots": "checkpoints.max_snapshots",
    "checkpoint_max_total_size_mb": "checkpoints.max_total_size_mb",
    "checkpoint_max_file_size_mb": "checkpoints.max_file_size_mb",
}
NO_MEMORY: dict[str, Any] = {
    "memory.memory_enabled": False,
    "memory.user_profile_enabled": False,
    "memory.provider": "",
}


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the caller has chosen."""
    found = {key: _plain(given[name]) for name, key in SETTINGS.items()}
    found["agent.reasoning_effort"] = (given["reasoning_config"] or {}).get("effort")
    found["fallback_providers"] = _chain(given["fallback_model"])
    found["approvals.mode"] = "off" if given["yolo"] else None
    if given["skip_memory"]:
        found["agent.disabled_toolsets"] = [*(found["agent.disabled_toolsets"] or ()), "memory"]
    chosen = {key: value for key, value in found.items() if value or value is False}
    return chosen | (NO_MEMORY if given["skip_memory"] else {})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


def _chain(fallback: JsonObject | Sequence[JsonObject] | None) -> list[JsonObject]:
    """One fallback model or several."""
    if not fallback:
        return []
    return [fallback] if isinstance(fallback, dict) else list(fallback)
