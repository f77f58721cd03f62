"""A home of Hermes Agent: settings, keys, identity, memory, skills and sessions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hermes.codec.values import JsonObject
from hermes.config.environment import is_secret_name, read_env_file
from hermes.config.home import Home
from hermes.config.yaml_parser import BadYaml, parse_yaml
from hermes.core.errors import NotFound
from hermes.homes.moving.foreign import ForeignHome, skill_folders, text_of
from hermes.homes.moving.past import session_lines
from hermes.memory.entries import split_entries

STATE = "state.db"
_SIGNS = (STATE, "config.yaml", "memories", "skills", "SOUL.md")


def read_hermes_agent(root: Path) -> ForeignHome:
    """What such a home holds; NotFound when the folder is none."""
    if not any((root / name).exists() for name in _SIGNS):
        raise NotFound(f"{root} is not a home of Hermes Agent: it has none of {', '.join(_SIGNS)}.")
    settings, problems = _settings(root / "config.yaml")
    env = read_env_file(Home(root))
    state = root / STATE
    return ForeignHome(
        root=root,
        settings=settings,
        secrets={name: value for name, value in env.variables.items() if is_secret_name(name)},
        soul=text_of(root / "SOUL.md"),
        memories={
            "memory": split_entries(text_of(root / "memories" / "MEMORY.md")),
            "user": split_entries(text_of(root / "memories" / "USER.md")),
        },
        skills=skill_folders(root / "skills"),
        sessions=partial(session_lines, state) if state.exists() else None,
        problems=problems,
    )


def _settings(path: Path) -> tuple[JsonObject, tuple[str, ...]]:
    if not path.exists():
        return {}, ()
    try:
        data = parse_yaml(path.read_bytes())
    except (OSError, BadYaml) as error:
        return {}, (f"{path} cannot be read ({error}); its settings are left out.",)
    # Their versions are counted by themselves.
    return {name: value for name, value in data.items() if name != "_config_version"}, ()
