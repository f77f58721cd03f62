"""Maps command-line options to settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.codec.values import JsonValue

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
    """The settings that the given options override, by key."""
    found: dict[str, JsonValue] = {
        key: options[option] for option, key in FLAGS.items() if options.get(option)
    }
    if options.get("yolo"):
        found["approvals.mode"] = "off"
    if options.get("toolsets"):
        found["toolsets"] = [name.strip() for name in options["toolsets"].split(",")]
        found["platform_toolsets"] = {}
    return found
