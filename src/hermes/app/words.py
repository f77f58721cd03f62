"""A tool call in a few words, for every surface."""

from __future__ import annotations

from hermes.codec.values import JsonObject

MAIN_ARGUMENTS = ("command", "path", "pattern", "query", "url", "question", "action", "patch")


def preview(_name: str, arguments: JsonObject, limit: int = 0) -> str:
    """The first line of the argument that matters most; a limit of 0 cuts nothing."""
    for name in MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            line = value.strip().partition("\n")[0]
            return line[: limit - 1] + "…" if limit and len(line) > limit else line
    return ""
