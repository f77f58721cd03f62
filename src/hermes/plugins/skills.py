"""Copies skills of plugins for sessions: read-only and prefixed with the plugin's name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hermes.core.errors import ConfigError
from hermes.plugins.contents import Contents, hash_of, read_contents, remove_copy, write_copy
from hermes.plugins.found import FoundPlugin
from hermes.plugins.plugins import PluginState

MAIN = "SKILL.md"
_NAME_LINE = re.compile(r"^name:.*$", re.MULTILINE)


def sync_skills(states: Iterable[PluginState], folder: Path) -> list[str]:
    """Makes `folder` contain exactly the skills of these plugins; returns errors."""
    wanted: dict[str, Contents] = {}
    faults: list[str] = []
    for state in states:
        for offer in state.surface.skills if state.surface else ():
            name = f"{state.found.name}.{offer.name}"
            try:
                wanted[name] = _skill(state.found, offer.path, name)
            except ConfigError as error:
                faults.append(f"{name}: {error}")
    there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    for name in there - wanted.keys():
        remove_copy(folder / name)
    if wanted:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, contents in wanted.items():
        write_copy(contents, folder / name)
    return faults


def _skill(plugin: FoundPlugin, path: str, name: str) -> Contents:
    """Reads a skill from the plugin's approved files."""
    inner = _relative_path(path.removeprefix(f"{plugin.place}/") if plugin.trusted else path)
    prefix = "" if inner == "." else f"{inner}/"
    whole = read_contents(Path(plugin.place))
    if not plugin.trusted and hash_of(whole) != plugin.hash:
        raise ConfigError("Its files have changed.")
    found = {n.removeprefix(prefix): data for n, data in whole.items() if n.startswith(prefix)}
    if MAIN not in found:
        raise ConfigError(f"{path} has no {MAIN}.")
    text = found[MAIN].decode("utf-8", "replace")
    return {**found, MAIN: _NAME_LINE.sub(f"name: {name}", text, count=1).encode()}


def _relative_path(path: str) -> str:
    """Returns the path relative to the plugin."""
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise ConfigError(f"{path} is outside the plugin.")
    if path.startswith("/"):
        # Absolute paths point into the running copy: KEY-HASH/NAME/…
        marks = [at for at, part in enumerate(parts) if re.search(r"-[0-9a-f]{64}$", part)]
        if not marks:
            raise ConfigError(f"{path} is outside the plugin.")
        parts = parts[marks[-1] + 2 :]
    return "/".join(parts) or "."
