"""Skills of plugins, as copies that sessions can find: read-only, and named after the plugin."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from hermes.core.errors import ConfigError
from hermes.plugins.contents import Contents, forget_copies, hash_of, keep, read_contents
from hermes.plugins.found import Found
from hermes.plugins.plugins import State

MAIN = "SKILL.md"
_NAME_LINE = re.compile(r"^name:.*$", re.MULTILINE)


def put_skills(states: Iterable[State], folder: Path) -> list[str]:
    """Makes `folder` hold the skills of these plugins and no others; what is wrong with some."""
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
        forget_copies(folder / name)
    if wanted:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, contents in wanted.items():
        keep(contents, folder / name)
    return faults


def _skill(plugin: Found, path: str, name: str) -> Contents:
    """Only what lies in the plugin's own folder, however the path is written, and only as it was
    agreed to."""
    inner = _inside(path.removeprefix(f"{plugin.place}/") if plugin.trusted else path)
    prefix = "" if inner == "." else f"{inner}/"
    whole = read_contents(Path(plugin.place))
    if not plugin.trusted and hash_of(whole) != plugin.hash:
        raise ConfigError("Its files have changed.")
    found = {n.removeprefix(prefix): data for n, data in whole.items() if n.startswith(prefix)}
    if MAIN not in found:
        raise ConfigError(f"There is no {MAIN} in {path}.")
    text = found[MAIN].decode("utf-8", "replace")
    return {**found, MAIN: _NAME_LINE.sub(f"name: {name}", text, count=1).encode()}


def _inside(path: str) -> str:
    """A plugin names its folder from where it runs, or from its top."""
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise ConfigError(f"{path} leads out of the plugin.")
    if path.startswith("/"):
        # Absolute paths are those of the copy that runs: KEY-HASH/NAME/…
        marks = [at for at, part in enumerate(parts) if re.search(r"-[0-9a-f]{64}$", part)]
        if not marks:
            raise ConfigError(f"{path} is not in the plugin.")
        parts = parts[marks[-1] + 2 :]
    return "/".join(parts) or "."
