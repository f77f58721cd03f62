"""Names of MCP tools: valid for every provider and unique."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
_DIGITS = 6


def tool_name(server: str, tool: str) -> str:
    """Returns `mcp_<server>_<tool>` in characters that all providers accept."""
    whole = f"mcp_{server}_{tool}"
    plain = re.sub(r"[^A-Za-z0-9_]", "_", whole)
    return plain if len(plain) <= LONGEST else _with_suffix(plain, server, tool)


def tool_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Returns a unique name for each tool. The first of equal names stays plain; others get a
    stable suffix."""
    named: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for server, tool in tools:
        name = tool_name(server, tool)
        if name in taken:
            name = _with_suffix(name, server, tool)
        taken.add(name)
        named[server, tool] = name
    return named


def _with_suffix(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_DIGITS]
    return f"{name[: LONGEST - _DIGITS - 1]}_{digest}"
