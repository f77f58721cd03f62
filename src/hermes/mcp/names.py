"""What foreign tools are called here: names that every provider takes and that never meet."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 64
_DIGITS = 6


def tool_name(server: str, tool: str) -> str:
    """`mcp_<server>_<tool>` in letters that are allowed everywhere."""
    whole = f"mcp_{server}_{tool}"
    plain = re.sub(r"[^A-Za-z0-9_]", "_", whole)
    return plain if len(plain) <= LONGEST else _marked(plain, server, tool)


def tool_names(tools: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name of its own for each tool of each server. Of several that would be called the same,
    the first keeps the plain name; the mark of another depends on nothing but itself."""
    named: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for server, tool in tools:
        name = tool_name(server, tool)
        if name in taken:
            name = _marked(name, server, tool)
        taken.add(name)
        named[server, tool] = name
    return named


def _marked(name: str, server: str, tool: str) -> str:
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_DIGITS]
    return f"{name[: LONGEST - _DIGITS - 1]}_{digest}"
