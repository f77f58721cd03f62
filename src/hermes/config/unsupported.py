"""Settings of the Hermes specification that this version does not have, and what to do instead."""

from __future__ import annotations

from hermes.config.schema import KeyPath, format_key

_NO_GATEWAY = "the gateway has no such setting in this version"
_CHILD_PROVIDER = "define the endpoint in `providers`, and name it in `delegation.provider`"
_NO_BROWSER = "this version has no browser"
_NO_SCANNER = "the policy judges commands without an external scanner"
_TOOL_SEARCH = "tools beyond `context.direct_tool_tokens` are always found by search"

# A key, or a section with everything below it.
REASONS: dict[str, str] = {
    "agent.image_input_mode": "images are sent to models that accept them",
    "agent.gateway_timeout_warning": _NO_GATEWAY,
    "agent.gateway_notify_interval": _NO_GATEWAY,
    "agent.restart_drain_timeout": "set `api_server.drain_seconds`",
    "terminal.home_mode": "commands see the home folder as `security` settings allow",
    "terminal.modal_mode": "Modal is used with your own account",
    "tools.tool_search": _TOOL_SEARCH,
    "tools": _TOOL_SEARCH,
    "web.provider": "choose a service or plugin with `web.backend`",
    "web.extract_char_limit": "long results are moved to a file; see `tool_output`",
    "approvals.mcp_reload_confirm": "MCP servers are reloaded only by your own command",
    "display.tool_progress_overrides": "`display.tool_progress` applies to all surfaces",
    "security.tirith_enabled": _NO_SCANNER,
    "security.tirith_path": _NO_SCANNER,
    "security.tirith_timeout": _NO_SCANNER,
    "security.tirith_fail_open": _NO_SCANNER,
    "sessions.vacuum_after_prune": "deleted sessions are always scrubbed from the database",
    "browser": _NO_BROWSER,
    "delegation.base_url": _CHILD_PROVIDER,
    "delegation.api_key": _CHILD_PROVIDER,
    "delegation.api_mode": _CHILD_PROVIDER,
    "human_delay": "set `gateway.human_delay`",
    "model_catalog": "the model catalogue is part of the release",
    "mcp": "servers are under `mcp_servers`",
    "stt.enabled": "speech is transcribed if a provider is configured",
    "voice": "this version has no voice input",
    "auxiliary.skills_hub": "skills are installed without a model",
}


def unsupported_reason(path: KeyPath) -> str:
    """Return why this version has no such setting, or ""."""
    for length in range(len(path), 0, -1):
        if reason := REASONS.get(format_key(path[:length])):
            return reason
    return ""
