"""A folder of OpenClaw: identity, memory, skills, the chosen model and, if wanted, keys."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.environment import is_secret_name, read_env_file
from hermes.config.home import Home
from hermes.core.errors import NotFound
from hermes.homes.moving.foreign import ForeignHome, skill_folders, text_of

CONFIG = "openclaw.json"
_SIGNS = (CONFIG, "workspace")


def read_openclaw(root: Path) -> ForeignHome:
    """What such a folder holds; NotFound when it is none."""
    if not any((root / name).exists() for name in _SIGNS):
        raise NotFound(f"{root} is not a folder of OpenClaw: it has none of {', '.join(_SIGNS)}.")
    config, problems = _config(root / CONFIG)
    workspace = _workspace(root, config)
    env = read_env_file(Home(root)).variables
    return ForeignHome(
        root=root,
        settings=_model(config),
        secrets={
            name: value
            for name, value in {**_named_file(config), **env}.items()
            if is_secret_name(name)
        },
        soul=text_of(workspace / "SOUL.md"),
        memories={
            "memory": paragraphs(text_of(workspace / "MEMORY.md")),
            "user": paragraphs(text_of(workspace / "USER.md")),
        },
        skills=(*skill_folders(workspace / "skills"), *skill_folders(root / "skills")),
        problems=problems,
    )


def _config(path: Path) -> tuple[JsonObject, tuple[str, ...]]:
    if not path.exists():
        return {}, ()
    try:
        return decode(dict, path.read_bytes()), ()
    except (OSError, DecodeError) as error:
        return {}, (f"{path} cannot be read as JSON ({error}); its settings are left out.",)


def _at(config: JsonValue, *names: str) -> JsonValue:
    for name in names:
        config = config.get(name) if isinstance(config, dict) else None
    return config


def _workspace(root: Path, config: JsonObject) -> Path:
    said = _at(config, "agents", "defaults", "workspace")
    named = Path(said).expanduser() if isinstance(said, str) and said else root / "workspace"
    return named if named.is_dir() else root / "workspace"


def _model(config: JsonObject) -> JsonObject:
    said = _at(config, "agents", "defaults", "model")
    name = _at(said, "primary") if isinstance(said, dict) else said
    return {"model": {"default": name}} if isinstance(name, str) and name else {}


def _named_file(config: JsonObject) -> dict[str, str]:
    """Variables that its settings give to the agent."""
    held = _at(config, "env", "vars") or _at(config, "env")
    pairs = held.items() if isinstance(held, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def paragraphs(text: str) -> tuple[str, ...]:
    """Markdown notes as entries: each item of a list, and each paragraph that is no heading."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if not line.lstrip().startswith("#")]
        entry: list[str] = []
        for line in lines:
            if match := re.match(r"\s*[-*]\s+(.*)", line):
                found += [" ".join(entry)] if entry else []
                entry = [match[1].strip()]
            elif line.strip():
                entry.append(line.strip())
        found += [" ".join(entry)] if entry else []
    return tuple(entry for entry in found if entry)
