"""Resolves toolsets, the named groups of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from hermes.codec.values import Value
from hermes.core.errors import UsageError
from hermes.tools.catalogue import declarations

EVERYTHING = ("all", "*")
# Where requests cannot name all tools, they name these, in this order, as far as they fit.
CORE = (
    "terminal",
    "read_file",
    "patch",
    "write_file",
    "search_files",
    "todo",
    "session_search",
    "memory",
    "skill_view",
    "process",
    "clarify",
)
# These two find and use the others.
SEARCHING = ("tool_search", "tool_call")


class Toolset(Value):
    """Tools by name, and other toolsets whose tools it includes."""

    tools: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


# Toolsets that consist of others, or name a tool a second time.
COMPOSED: dict[str, Toolset] = {
    "hermes-cli": Toolset(
        includes=(
            "clarify",
            "file",
            "image_gen",
            "memory",
            "session_search",
            "skills",
            "terminal",
            "todo",
            "tts",
            "web",
        )
    ),
    "search": Toolset(tools=("web_search",)),
}


@cache
def toolsets_by_name() -> dict[str, Toolset]:
    """All toolsets: those that tools declare, and the composed ones."""
    tools: dict[str, list[str]] = {}
    for name, each in declarations().items():
        tools.setdefault(each.toolset, []).append(name)
    found = {name: Toolset(tools=tuple(held)) for name, held in tools.items()} | COMPOSED
    return {name: found[name] for name in sorted(found)}


def resolve_toolsets(
    enabled: Iterable[str],
    disabled: Iterable[str] = (),
    *,
    toolsets: Mapping[str, Toolset] | None = None,
) -> tuple[str, ...]:
    """Return the tools of all enabled toolsets without those of the disabled ones, sorted by name;
    UsageError for a toolset that does not exist or includes itself."""
    toolsets = toolsets_by_name() if toolsets is None else toolsets
    wanted = {tool for name in enabled for tool in _tools_of(name, toolsets, ())}
    unwanted = {tool for name in disabled for tool in _tools_of(name, toolsets, ())}
    return tuple(sorted(wanted - unwanted))


def _tools_of(name: str, toolsets: Mapping[str, Toolset], path: tuple[str, ...]) -> set[str]:
    if name in EVERYTHING:
        return {tool for each in toolsets for tool in _tools_of(each, toolsets, ())}
    if name in path:
        raise UsageError(f"The toolset {name} includes itself: {' -> '.join((*path, name))}.")
    if name not in toolsets:
        raise UsageError(_unknown(name, toolsets))
    toolset = toolsets[name]
    inner = (_tools_of(each, toolsets, (*path, name)) for each in toolset.includes)
    return set(toolset.tools).union(*inner)


def _unknown(name: str, toolsets: Mapping[str, Toolset]) -> str:
    # Needed for errors only, and slow to import.
    import difflib

    near = difflib.get_close_matches(name, toolsets, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(toolsets)}."
    return f"There is no toolset named {name!r}. {advice}"
