"""Suggests similar names for a misspelled one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from hermes.config.schema import (
    KeyPath,
    all_settings,
    fields_of,
    find_setting,
    format_key,
    is_section,
)
from hermes.config.settings import Settings


def suggest_names(word: str, among: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """The most similar names, best first; empty if none is similar."""
    return tuple(difflib.get_close_matches(word, list(among), n=count, cutoff=0.6))


def suggest_keys(path: KeyPath) -> tuple[str, ...]:
    """The most similar keys: first those of the same section, then the same name in another
    section, then any similar key."""
    beside = suggest_names(path[-1], _sibling_names(path[:-1]))
    here = tuple(format_key((*path[:-1], name)) for name in beside)
    keys = [setting.key for setting in all_settings(Settings)]
    same = tuple(key for key in keys if key.rpartition(".")[2] == path[-1])
    return tuple(dict.fromkeys(here + same + suggest_names(format_key(path), keys)))[:3]


def _sibling_names(section: KeyPath) -> tuple[str, ...]:
    if not section:
        return tuple(fields_of(Settings))
    found = find_setting(Settings, section)
    return tuple(fields_of(found.kind)) if found and is_section(found.kind) else ()
