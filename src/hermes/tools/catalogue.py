"""Lists the built-in tools with their schemas; each tool is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from hermes.codec.json import decode
from hermes.codec.values import Value
from hermes.core.errors import NotFound
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool, ToolDisplay, ToolKind

# Written by scripts/generate_schemas.py from the `@tool` declarations.
SCHEMAS = Path(__file__).with_name("schemas.json")


class ToolDeclaration(Value):
    """What `@tool` says about a built-in tool, and the "module:name" where it is."""

    spec: ToolSpec
    target: str
    toolset: str
    kind: ToolKind = "other"
    display: ToolDisplay = ToolDisplay()
    conditional: bool = False


@cache
def declarations() -> dict[str, ToolDeclaration]:
    """The built-in tools by name, without importing any of them."""
    found = decode(list[ToolDeclaration], SCHEMAS.read_bytes())
    return {each.spec.name: each for each in found}


class CatalogueEntry:
    """An available tool: its schema for the model, and the tool itself or its "module:name"."""

    def __init__(self, spec: ToolSpec, target: Tool | str) -> None:
        self.spec = spec
        self._target = target

    def load(self) -> Tool:
        if isinstance(self._target, str):
            self._target = load_target(self._target)
        return self._target


class ToolCatalogue:
    """All tools that a session could have. A later entry of the same name replaces an earlier
    one."""

    def __init__(self, entries: Iterable[CatalogueEntry]) -> None:
        self._entries = {entry.spec.name: entry for entry in entries}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._entries))

    def specs(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """Sorted by name, so that the same tools give the same bytes."""
        return tuple(self._entry(name).spec for name in sorted(set(names)))

    def load(self, name: str) -> Tool:
        return self._entry(name).load()

    def choose(self, names: Iterable[str], *, hidden: Iterable[str] = ()) -> ChosenTools:
        """Return the tools of one session. Names that the catalogue does not have are skipped: a
        tool that is not available here is not offered."""
        there = [name for name in hidden if name in self._entries]
        return ChosenTools(self, (name for name in names if name in self._entries), there)

    def _entry(self, name: str) -> CatalogueEntry:
        if name not in self._entries:
            raise NotFound(f"There is no tool named {name!r}.")
        return self._entries[name]


class ChosenTools:
    """Some tools of a catalogue: a toolbox for the loop. Requests do not name the `hidden` ones,
    but calls can use them; `later` looks up tools that were added after the choice."""

    later: Callable[[str], Tool | None] | None = None

    def __init__(
        self, catalogue: ToolCatalogue, names: Iterable[str], hidden: Iterable[str] = ()
    ) -> None:
        self._catalogue = catalogue
        self._specs = catalogue.specs(names)
        shown = {spec.name for spec in self._specs}
        self._hidden = frozenset(hidden) - shown
        self._names = shown | self._hidden

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    @property
    def hidden(self) -> tuple[ToolSpec, ...]:
        return self._catalogue.specs(self._hidden)

    def load(self, name: str) -> Tool | None:
        if name in self._names:
            return self._catalogue.load(name)
        return self.later(name) if self.later is not None else None


def built_in_entries() -> tuple[CatalogueEntry, ...]:
    return tuple(CatalogueEntry(each.spec, each.target) for each in declarations().values())


def load_target(target: str) -> Tool:
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, Tool):
        raise TypeError(f"{target} is not a tool")
    return found
