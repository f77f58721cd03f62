"""The built-in rule for MCP servers that the settings mark as untrusted."""

from __future__ import annotations

from hermes.config.load import Config
from hermes.policy.owner_rules import Rule

# How effects name such a server (see `hermes.mcp.tools`).
MATCH = "* (untrusted)/*"
REASON = "The settings mark this server as untrusted, and the tool is not declared read-only."


def untrusted_server_rules(config: Config) -> tuple[Rule, ...]:
    if all(own.trust == "full" for own in config.settings.mcp_servers.values()):
        return ()
    return (Rule(decision="ask", match=MATCH, effect="server", reason=REASON),)
