"""Toolsets, and the tools of one session: a few in every request, others found on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from hermes.codec.json import encode
from hermes.codec.values import Value
from hermes.config.settings import Settings
from hermes.core.errors import UsageError
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.tools.catalogue import (
    CatalogueEntry,
    ChosenTools,
    ToolCatalogue,
    built_in_entries,
    declarations,
)

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


_BYTES_PER_TOKEN = 4
CROWDED = 0.8

# Tools of the memory providers.
PROVIDER_TOOLSETS: dict[str, tuple[str, ...]] = {
    "": (),
    "local": ("user_model",),
    "honcho": ("honcho",),
}


class SessionTools:
    """The catalogue of one process; sessions with the same tools share them."""

    def __init__(self) -> None:
        self._catalogue: ToolCatalogue | None = None
        self._at_times: dict[str, CatalogueEntry] = {}
        self._added: dict[str, CatalogueEntry] = {}
        self._direct: dict[tuple[tuple[str, ...], int, bool], tuple[str, ...]] = {}
        self._chosen: dict[tuple[tuple[str, ...], tuple[str, ...]], ChosenTools] = {}

    def add(self, entries: Iterable[CatalogueEntry], *, instead_of: Iterable[str] = ()) -> None:
        """Add tools of servers and plugins, and remove those in `instead_of`. Open sessions find
        them by search, so that their prompt prefix stays the same."""
        for name in instead_of:
            self._added.pop(name, None)
        self._added |= {entry.spec.name: entry for entry in entries}
        self._catalogue = None
        self._chosen.clear()
        self._direct.clear()

    def offer(self, name: str, entry: CatalogueEntry | None) -> None:
        """Offer a conditional tool in its present form, or withdraw it with None."""
        if entry is None and name not in self._at_times:
            return
        if entry is None:
            del self._at_times[name]
        else:
            self._at_times[name] = entry
        self._catalogue = None
        self._chosen.clear()
        self._direct.clear()

    @property
    def added(self) -> tuple[CatalogueEntry, ...]:
        return tuple(self._added.values())

    def find(self, name: str) -> Tool | None:
        """Return any tool of this process, shown or not."""
        every = self._all()
        return every.load(name) if name in every.names else None

    def filter_known(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that are tools of this process, in the same order."""
        every = self._all().names
        return tuple(name for name in names if name in every)

    def choose_direct(
        self, names: tuple[str, ...], tokens: int, *, more: bool = False
    ) -> tuple[str, ...]:
        """Return the tools that every request names: all of them if they fit into `tokens`, else
        the most important ones and the search tools; with `more`, there are others to find."""
        if not names:
            return ()
        known = (names, tokens, more)
        if known not in self._direct:
            self._direct[known] = self._fit_into(names, tokens, more)
        return self._direct[known]

    def _fit_into(self, names: tuple[str, ...], tokens: int, more: bool) -> tuple[str, ...]:
        known = self._all().names
        plain = tuple(name for name in names if name not in SEARCHING and name in known)
        if not self._added and not more and self._tokens(plain) <= tokens:
            return plain
        # With many tools, the text about them must fit into the request too.
        left = int(tokens * CROWDED) - self._tokens(SEARCHING)
        kept: list[str] = []
        for name in (*CORE, *plain):
            size = self._tokens((name,)) if name in plain and name not in kept else left + 1
            if size <= left:
                kept.append(name)
                left -= size
        return tuple(sorted((*kept, *SEARCHING)))

    def choose(self, names: tuple[str, ...], findable: tuple[str, ...] = ()) -> ChosenTools:
        """`names` are shown; `findable` and added tools can be used as well, if the search tools
        are among the names."""
        more = (*findable, *self._added) if SEARCHING[0] in names else ()
        key = names, more
        if key not in self._chosen:
            chosen = self._all().choose(names, hidden=more)
            # Open sessions find tools that are added later, so they must be able to use them.
            chosen.later = self._later if SEARCHING[0] in names else None
            self._chosen[key] = chosen
        return self._chosen[key]

    def _later(self, name: str) -> Tool | None:
        """Other programs write `mcp__server__tool`, and models remember that."""
        for each in (name, name.replace("__", "_")):
            if each in self._added:
                return self._added[each].load()
        return None

    def hidden(self, names: tuple[str, ...], findable: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        """Return the tools of a session that are not shown."""
        return self.choose(names, findable).hidden

    def _all(self) -> ToolCatalogue:
        if self._catalogue is None:
            declared = declarations()
            own = (e for e in built_in_entries() if not declared[e.spec.name].conditional)
            self._catalogue = ToolCatalogue((*own, *self._at_times.values(), *self._added.values()))
        return self._catalogue

    def _tokens(self, names: Iterable[str]) -> int:
        specs = self._all().choose(names).specs
        return sum(-(-len(encode(spec)) // _BYTES_PER_TOKEN) for spec in specs)


def wanted_names(
    settings: Settings, *, platform: str = "", reduced: bool = False
) -> tuple[str, ...]:
    """Return the tools of sessions on a surface. A model that is too small for tools gets none."""
    if reduced:
        return ()
    chosen = settings.platform_toolsets.get(platform, settings.toolsets)
    enabled = (*chosen, *PROVIDER_TOOLSETS.get(settings.memory.provider, ()))
    return _resolve_cached(enabled, tuple(settings.agent.disabled_toolsets))


@lru_cache(maxsize=16)
def _resolve_cached(enabled: tuple[str, ...], disabled: tuple[str, ...]) -> tuple[str, ...]:
    return resolve_toolsets(enabled, disabled)
