"""Which tools there are: each one known by its schema from the start, loaded on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path

from hermes.codec.json import decode
from hermes.core.errors import NotFound
from hermes.core.prompt import ToolSpec
from hermes.core.tools import Tool

TARGETS = {
    "clarify": "hermes.tools.clarify:clarify",
    "honcho_conclude": "hermes.memory.honcho.tools:honcho_conclude",
    "honcho_context": "hermes.memory.honcho.tools:honcho_context",
    "honcho_profile": "hermes.memory.honcho.tools:honcho_profile",
    "honcho_reasoning": "hermes.memory.honcho.tools:honcho_reasoning",
    "honcho_search": "hermes.memory.honcho.tools:honcho_search",
    "image_generate": "hermes.images.tools:image_generate",
    "memory": "hermes.memory.tools:memory",
    "patch": "hermes.tools.files.patch:patch",
    "process": "hermes.tools.process:process",
    "read_file": "hermes.tools.files.read:read_file",
    "search_files": "hermes.tools.search:search_files",
    "session_search": "hermes.recall.tools:session_search",
    "skill_manage": "hermes.skills.tools:skill_manage",
    "skill_view": "hermes.skills.tools:skill_view",
    "skills_list": "hermes.skills.tools:skills_list",
    "terminal": "hermes.tools.terminal:terminal",
    "text_to_speech": "hermes.speech.tools:text_to_speech",
    "todo": "hermes.tools.todo:todo",
    "tool_call": "hermes.tools.discovery:tool_call",
    "tool_search": "hermes.tools.discovery:tool_search",
    "transcribe": "hermes.speech.tools:transcribe",
    "user_model_query": "hermes.memory.local.tools:user_model_query",
    "user_profile": "hermes.memory.local.tools:user_profile",
    "web_extract": "hermes.web.tools:web_extract",
    "web_search": "hermes.web.tools:web_search",
    "write_file": "hermes.tools.files.write:write_file",
}
# Written by scripts/generate_schemas.py from the signatures of the targets.
SCHEMAS = Path(__file__).with_name("schemas.json")


class Entry:
    """A tool that may be used: what the model sees of it, and the tool itself or the
    "module:name" where it is found."""

    def __init__(self, spec: ToolSpec, target: Tool | str) -> None:
        self.spec = spec
        self._target = target

    def load(self) -> Tool:
        if isinstance(self._target, str):
            self._target = load_target(self._target)
        return self._target


class Catalogue:
    """All tools that a session could have. A later entry of the same name replaces an earlier."""

    def __init__(self, entries: Iterable[Entry]) -> None:
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
        """The tools of one session, shown and hidden ones. Names that the catalogue does not have
        are left out: a tool that is not available here is simply not offered."""
        there = [name for name in hidden if name in self._entries]
        return ChosenTools(self, (name for name in names if name in self._entries), there)

    def _entry(self, name: str) -> Entry:
        if name not in self._entries:
            raise NotFound(f"There is no tool named {name!r}.")
        return self._entries[name]


class ChosenTools:
    """Some tools of a catalogue: a toolbox for the loop. `hidden` ones are not named in requests,
    but can be used by whoever has found them; `later` knows those that came after the choice."""

    later: Callable[[str], Tool | None] | None = None

    def __init__(
        self, catalogue: Catalogue, names: Iterable[str], hidden: Iterable[str] = ()
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


def built_in_entries() -> tuple[Entry, ...]:
    """The tools of this package, without importing any of them."""
    specs = decode(list[ToolSpec], SCHEMAS.read_bytes())
    return tuple(Entry(spec, TARGETS[spec.name]) for spec in specs)


def load_target(target: str) -> Tool:
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(module), name)
    if not isinstance(found, Tool):
        raise TypeError(f"{target} is not a tool")
    return found
