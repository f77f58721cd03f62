"""Toolsets, and the tools of one session: a few in every request, others found on demand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from hermes.codec.json import encode
from hermes.codec.tokens import tokens_of_size
from hermes.config.settings import Settings
from hermes.core.errors import UsageError
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool
from hermes.tools.catalogue import (
    CatalogueEntry,
    ChosenTools,
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
    "web_search",
    "web_extract",
    # These two exist only where they are set up.
    "cronjob",
    "image_generate",
    "process",
    "clarify",
    "delegate_task",
)
# These two find and use the others.
SEARCHING = ("tool_search", "tool_call")
# Where tools are found by search, these are too, although no default toolset has them.
RARE = ("execute_code", "plan")
# A person can run this tool directly in every session. It only calls tools that the session has.
ALWAYS = "plan"
# The share of the token limit that direct tools may use where others have to be found.
CROWDED = 0.92

DEFAULT_TOOLSET = "hermes-cli"
# Toolsets that consist of other toolsets, or name a tool a second time.
COMPOSED = {
    DEFAULT_TOOLSET: "clarify cronjob delegation file image_gen memory session_search skills "
    "terminal todo tts web",
    "search": "web_search",
}
# Tools that scheduled jobs do not have: nobody is present, and their answer is delivered anyway.
UNATTENDED = ("clarify", "send_message")
# Toolsets of the memory providers.
PROVIDER_TOOLSETS = {"local": ("user_model",), "honcho": ("honcho",)}


@cache
def toolsets_by_name() -> dict[str, tuple[str, ...]]:
    """Return the tools of all toolsets: those that tools declare, and the composed ones."""
    found: dict[str, tuple[str, ...]] = {}
    for name, each in declarations().items():
        found[each.toolset] = (*found.get(each.toolset, ()), name)
    composed = {
        name: tuple(tool for part in parts.split() for tool in found.get(part, (part,)))
        for name, parts in COMPOSED.items()
    }
    return dict(sorted({**found, **composed}.items()))


def resolve_toolsets(enabled: Iterable[str], disabled: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the tools of all enabled toolsets without those of the disabled ones, sorted by name;
    raise UsageError for a toolset that does not exist."""
    return tuple(sorted(_tools_of(enabled) - _tools_of(disabled)))


def _tools_of(names: Iterable[str]) -> set[str]:
    toolsets = toolsets_by_name()
    found: set[str] = set()
    for name in names:
        if name in EVERYTHING:
            found.update(*toolsets.values())
        elif name in toolsets:
            found.update(toolsets[name])
        else:
            # Needed for errors only, and slow to import.
            import difflib

            near = difflib.get_close_matches(name, toolsets, n=3, cutoff=0.5)
            advice = f"There are: {', '.join(toolsets)}."
            if near:
                advice = f"Did you mean {' or '.join(near)}?"
            raise UsageError(f"There is no toolset named {name!r}. {advice}")
    return found


class SessionTools:
    """The catalogue of one process; sessions with the same tools share them."""

    def __init__(self) -> None:
        self._available: dict[str, CatalogueEntry] | None = None
        self._conditional: dict[str, CatalogueEntry] = {}
        self._added: dict[str, CatalogueEntry] = {}
        self._direct: dict[tuple[tuple[str, ...], int, bool], tuple[str, ...]] = {}
        self._chosen: dict[tuple[tuple[str, ...], tuple[str, ...]], ChosenTools] = {}

    def add(self, entries: Iterable[CatalogueEntry], *, instead_of: Iterable[str] = ()) -> None:
        """Add tools of servers and plugins, and remove those in `instead_of`. Open sessions find
        them by search, so that their prompt prefix stays the same."""
        for name in instead_of:
            self._added.pop(name, None)
        self._added |= {entry.spec.name: entry for entry in entries}
        self._drop_caches()

    def offer(self, name: str, entry: CatalogueEntry | None) -> None:
        """Offer a conditional tool in its present form, or withdraw it with None."""
        if entry is None and name not in self._conditional:
            return
        if entry is None:
            del self._conditional[name]
        else:
            self._conditional[name] = entry
        self._drop_caches()

    def _drop_caches(self) -> None:
        self._available = None
        self._chosen.clear()
        self._direct.clear()

    @property
    def added(self) -> tuple[CatalogueEntry, ...]:
        return tuple(self._added.values())

    def find(self, name: str) -> Tool | None:
        """Return any tool of this process, shown or not."""
        entry = self._all().get(name)
        return entry.load() if entry is not None else None

    def filter_known(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that are tools of this process, in the same order."""
        return tuple(name for name in names if name in self._all())

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
        plain = tuple(name for name in self.filter_known(names) if name not in SEARCHING)
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
        """Return the tools of a session. `names` are shown; `findable` and added tools can be used
        as well, if the search tools are among the names."""
        more: tuple[str, ...] = ()
        if SEARCHING[0] in names:
            # A script can do what the terminal can.
            rare = RARE if "terminal" in (*names, *findable) else (ALWAYS,)
            more = (*findable, *self._added, *rare)
        key = names, more
        if key not in self._chosen:
            chosen = ChosenTools(self._all(), names, more)
            # Open sessions find tools that are added later, so they must be able to use them.
            chosen.later = self._later if SEARCHING[0] in names else self._always
            self._chosen[key] = chosen
        return self._chosen[key]

    def _later(self, name: str) -> Tool | None:
        """Load a tool that was added later. Other programs write `mcp__server__tool`, and models
        remember that."""
        for each in (name, name.replace("__", "_")):
            if each in self._added:
                return self._added[each].load()
        return None

    def _always(self, name: str) -> Tool | None:
        return self._all()[ALWAYS].load() if name == ALWAYS else None

    def hidden(self, names: tuple[str, ...], findable: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        """Return the tools of a session that are not shown."""
        return self.choose(names, findable).hidden

    def _all(self) -> dict[str, CatalogueEntry]:
        """Return all tools that a session could have."""
        if self._available is None:
            declared = declarations()
            own = {entry.spec.name: entry for entry in built_in_entries()}
            own = {name: own[name] for name in own if not declared[name].conditional}
            self._available = own | self._conditional | self._added
        return self._available

    def _tokens(self, names: Iterable[str]) -> int:
        specs = ChosenTools(self._all(), names).specs
        return sum(tokens_of_size(len(encode(spec))) for spec in specs)


def wanted_names(
    settings: Settings, *, platform: str = "", reduced: bool = False
) -> tuple[str, ...]:
    """Return the tools of sessions on a surface. A model that is too small for tools gets none."""
    if reduced:
        return ()
    chosen = settings.platform_toolsets.get(platform, settings.toolsets)
    enabled = (*chosen, *PROVIDER_TOOLSETS.get(settings.memory.provider, ()))
    names = _resolve_cached(enabled, tuple(settings.agent.disabled_toolsets))
    if platform != "cron":
        return names
    excluded = {*UNATTENDED, *(("memory",) if settings.cron.skip_memory else ())}
    if not settings.cron.allow_agent_scheduling:
        excluded.add("cronjob")
    return tuple(name for name in names if name not in excluded)


@lru_cache(maxsize=16)
def _resolve_cached(enabled: tuple[str, ...], disabled: tuple[str, ...]) -> tuple[str, ...]:
    return resolve_toolsets(enabled, disabled)
