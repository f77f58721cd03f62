"""The standing rule about servers that the settings call untrusted."""

from __future__ import annotations

from hermes.config.load import Config
from hermes.policy.owner_rules import Rule

# How an effect names such a server (`hermes.mcp.tools`).
MATCH = "* (untrusted)/*"
REASON = "The settings call this server untrusted, and the tool does not say that it only reads."


def untrusted_server_rules(config: Config) -> tuple[Rule, ...]:
    if all(own.trust == "full" for own in config.settings.mcp_servers.values()):
        return ()
    return (Rule(decision="ask", match=MATCH, effect="server", reason=REASON),)
