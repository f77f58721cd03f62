"""Lists the built-in tools with their schemas; each tool is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from hermes.codec.json import decode
from hermes.codec.values import Value
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool, ToolDisplay, ToolKind

# Written by scripts/generate_schemas.py from the `@tool` declarations.
SCHEMAS = Path(__file__).with_name("schemas.json")


class ToolDeclaration(Value):
    """The options of a built-in tool from `@tool`, and its location as "module:name"."""

    spec: ToolSpec
    target: str
    toolset: str
    kind: ToolKind = "other"
    display: ToolDisplay = ToolDisplay()
    conditional: bool = False


@cache
def declarations() -> dict[str, ToolDeclaration]:
    """Return the built-in tools by name, without importing any of them."""
    found = decode(list[ToolDeclaration], SCHEMAS.read_bytes())
    return {each.spec.name: each for each in found}


class CatalogueEntry:
    """An available tool: its schema for the model, and the tool itself, its "module:name" or a
    function that builds it on first use."""

    def __init__(self, spec: ToolSpec, target: Tool | str | Callable[[], Tool]) -> None:
        self.spec = spec
        self._target = target

    def load(self) -> Tool:
        if isinstance(self._target, str):
            self._target = load_target(self._target)
        elif not isinstance(self._target, Tool):
            self._target = self._target()
        return self._target


class ChosenTools:
    """The toolbox of one session. Names of unavailable tools are ignored. Requests do not list the
    `hidden` tools, but calls can use them. `later` looks up tools that were added after the session
    chose its tools."""

    later: Callable[[str], Tool | None] | None = None

    def __init__(
        self,
        available: Mapping[str, CatalogueEntry],
        names: Iterable[str],
        hidden: Iterable[str] = (),
    ) -> None:
        self._available = available
        shown = available.keys() & set(names)
        self._hidden = (available.keys() & set(hidden)) - shown
        self._names = shown | self._hidden
        self._specs = self._specs_of(shown)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    @property
    def hidden(self) -> tuple[ToolSpec, ...]:
        return self._specs_of(self._hidden)

    def load(self, name: str) -> Tool | None:
        if name in self._names:
            return self._available[name].load()
        return self.later(name) if self.later is not None else None

    def _specs_of(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """Sorted by name, so that the same tools give the same bytes."""
        return tuple(self._available[name].spec for name in sorted(names))


def built_in_entries() -> tuple[CatalogueEntry, ...]:
    return tuple(CatalogueEntry(each.spec, each.target) for each in declarations().values())


def load_target(target: str) -> Tool:
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, Tool):
        raise TypeError(f"{target} is not a tool")
    return found
