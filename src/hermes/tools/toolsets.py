"""Named groups of tools, and which tools some groups make together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermes.codec.values import Value
from hermes.core.errors import UsageError

EVERYTHING = ("all", "*")
# Where requests cannot name all tools, they name these, in this order, as far as there is room.
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
# The others are found and used with these two.
SEARCHING = ("tool_search", "tool_call")


class Toolset(Value):
    """Tools by name, and other toolsets whose tools belong to it too."""

    tools: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


TOOLSETS: dict[str, Toolset] = {
    "clarify": Toolset(tools=("clarify",)),
    "file": Toolset(tools=("patch", "read_file", "search_files", "write_file")),
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
    "honcho": Toolset(
        tools=(
            "honcho_conclude",
            "honcho_context",
            "honcho_profile",
            "honcho_reasoning",
            "honcho_search",
        )
    ),
    "image_gen": Toolset(tools=("image_generate",)),
    "memory": Toolset(tools=("memory",)),
    "search": Toolset(tools=("web_search",)),
    "session_search": Toolset(tools=("session_search",)),
    "skills": Toolset(tools=("skill_manage", "skill_view", "skills_list")),
    "terminal": Toolset(tools=("process", "terminal")),
    "todo": Toolset(tools=("todo",)),
    "tool_search": Toolset(tools=SEARCHING),
    "tts": Toolset(tools=("text_to_speech", "transcribe")),
    "user_model": Toolset(tools=("user_model_query", "user_profile")),
    "web": Toolset(tools=("web_extract", "web_search")),
}


def resolve_toolsets(
    enabled: Iterable[str],
    disabled: Iterable[str] = (),
    *,
    toolsets: Mapping[str, Toolset] = TOOLSETS,
) -> tuple[str, ...]:
    """The tools of all enabled toolsets without those of the disabled ones, sorted by name;
    UsageError for a toolset that does not exist or includes itself."""
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
    # Needed on the way out only, and slow to load.
    import difflib

    near = difflib.get_close_matches(name, toolsets, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(toolsets)}."
    return f"There is no toolset named {name!r}. {advice}"
