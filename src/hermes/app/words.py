"""Short previews of tool calls, for every surface."""

from __future__ import annotations

from hermes.codec.values import JsonObject

MAIN_ARGUMENTS = ("command", "path", "pattern", "query", "url", "question", "action", "patch")


def preview(_name: str, arguments: JsonObject, limit: int = 0) -> str:
    """The first line of the most important argument; a limit of 0 means no limit."""
    for name in MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            line = value.strip().partition("\n")[0]
            return line[: limit - 1] + "…" if limit and len(line) > limit else line
    return ""
