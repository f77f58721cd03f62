"""Maps the arguments of `AIAgent` to settings and to the request for a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hermes.core.errors import UsageError
from hermes.core.session_request import SessionRequest

# Argument name: setting.
SETTINGS = {
    "model": "model.default",
    "provider": "model.provider",
    "api_mode": "model.api_mode",
    "base_url": "model.base_url",
    "api_key": "model.api_key",
    "credential_pool": "model.api_keys",
    "max_tokens": "model.max_tokens",
    "request_overrides": "model.extra_body",
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
# Argument name: how the system prompt names it.
PLACE = {
    "user_name": "user",
    "chat_name": "chat",
    "chat_type": "kind of chat",
    "chat_id": "chat id",
    "thread_id": "thread",
}
NAME_CHARS = 200
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def settings_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the caller has chosen."""
    settings: dict[str, Any] = {}
    for name, key in SETTINGS.items():
        value = arguments[name]
        settings[key] = list(value) if isinstance(value, tuple) else value
    keys = settings["model.api_keys"]
    if keys and not settings["model.api_key"]:
        settings["model.api_key"], *settings["model.api_keys"] = keys
    effort, enabled = (
        (arguments["reasoning_config"] or {}).get(name) for name in ("effort", "enabled")
    )
    settings["agent.reasoning_effort"] = "none" if enabled is False else effort
    # One fallback model or several.
    fallback = arguments["fallback_model"] or []
    settings["fallback_providers"] = [fallback] if isinstance(fallback, dict) else list(fallback)
    settings["approvals.mode"] = "off" if arguments["yolo"] else None
    if arguments["skip_memory"]:
        settings["agent.disabled_toolsets"] = [
            *(settings["agent.disabled_toolsets"] or ()),
            "memory",
        ]
    chosen = {key: value for key, value in settings.items() if value or value is False}
    return chosen | (NO_MEMORY if arguments["skip_memory"] else {})


def request_of(arguments: Mapping[str, Any], *, attended: bool) -> SessionRequest:
    """The request for a session with these arguments."""
    platform, user = arguments["platform"], arguments["user_id"] or arguments["user_id_alt"]
    cwd, extra = arguments["cwd"], arguments["ephemeral_system_prompt"]
    return SessionRequest(
        source=platform or "python",
        platform=platform or "api",
        attended=attended,
        extra="\n\n".join(filter(None, (extra, _place(arguments)))),
        only_memory=arguments["skip_context_files"],
        soul=arguments["load_soul_identity"],
        cwd=str(cwd) if cwd else "",
        parent=arguments["parent_session_id"] or "",
        person=f"{platform or 'python'}:{user}" if user else "",
        job=arguments["gateway_session_key"] or "",
        tell_id=arguments["pass_session_id"],
    )


def check_session_id(session_id: str) -> None:
    """Raise UsageError for a text that cannot be the id of a session."""
    if not SESSION_ID.fullmatch(session_id):
        raise UsageError(
            f"{session_id[:80]!r} is not a session id; use up to 128 letters, digits and ._:-"
        )


def _place(arguments: Mapping[str, Any]) -> str:
    """Where and with whom the conversation takes place, for the system prompt."""
    facts = [
        f"{label} {' '.join(str(arguments[name]).split())[:NAME_CHARS]}"
        for name, label in PLACE.items()
        if arguments[name]
    ]
    return f"This conversation: {', '.join(facts)}." if facts else ""
