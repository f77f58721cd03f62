"""Reads the homes of other agents for migration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value
from hermes.config.environment import is_secret_name, read_env_file
from hermes.config.home import Home
from hermes.config.yaml_parser import BadYaml, parse_yaml
from hermes.core.errors import NotFound
from hermes.homes.archive_files import text_of
from hermes.homes.migration.conversations import get_path, session_lines
from hermes.memory.entries import split_entries

Kind = Literal["setting", "secret", "soul", "memory", "skill", "sessions"]
State = Literal["taken", "would be taken", "there already", "left out"]


class ForeignHome(Value):
    """`settings` use the keys of Hermes; `memories` are entries by target file; `skills` are
    folders with a SKILL.md; `sessions` yields journal export lines, oldest first."""

    root: Path
    settings: JsonObject = {}
    secrets: dict[str, str] = {}
    soul: str = ""
    memories: dict[Literal["memory", "user"], tuple[str, ...]] = {}
    skills: tuple[Path, ...] = ()
    sessions: Callable[[], Iterator[bytes]] | None = None
    problems: tuple[str, ...] = ()


class MigrationItem(Value):
    """One item and its outcome; `note` gives the reason."""

    kind: Kind
    name: str
    state: State
    note: str = ""


def skill_folders(root: Path) -> tuple[Path, ...]:
    """Folders with a SKILL.md; hidden folders and symbolic links are skipped."""
    if not root.is_dir():
        return ()
    found = (path.parent for path in sorted(root.rglob("SKILL.md")) if not path.is_symlink())
    return tuple(
        folder
        for folder in found
        if not any(part.startswith(".") for part in folder.relative_to(root).parts)
    )


STATE = "state.db"
_SIGNS = (STATE, "config.yaml", "memories", "skills", "SOUL.md")


def read_hermes_agent(root: Path) -> ForeignHome:
    """Raises NotFound when the folder is not such a home."""
    if not any((root / name).exists() for name in _SIGNS):
        raise NotFound(f"{root} is not a home of Hermes Agent: it has none of {', '.join(_SIGNS)}.")
    settings, problems = _read_config(root / "config.yaml", parse_yaml)
    # The version number belongs to the other program's schema.
    settings = {name: value for name, value in settings.items() if name != "_config_version"}
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


CONFIG = "openclaw.json"
_OPENCLAW_SIGNS = (CONFIG, "workspace")


def read_openclaw(root: Path) -> ForeignHome:
    """Raises NotFound when the folder is not such a home."""
    if not any((root / name).exists() for name in _OPENCLAW_SIGNS):
        signs = ", ".join(_OPENCLAW_SIGNS)
        raise NotFound(f"{root} is not a folder of OpenClaw: it has none of {signs}.")
    config, problems = _read_config(root / CONFIG, lambda data: decode(dict, data))
    defaults = get_path(config, "agents", "defaults")
    workspace, named = root / "workspace", get_path(defaults, "workspace")
    if isinstance(named, str) and named and Path(named).expanduser().is_dir():
        workspace = Path(named).expanduser()
    model = get_path(defaults, "model")
    model = get_path(model, "primary") if isinstance(model, dict) else model
    variables = get_path(config, "env", "vars") or get_path(config, "env")
    env: JsonObject = dict(variables) if isinstance(variables, dict) else {}
    env |= read_env_file(Home(root)).variables
    return ForeignHome(
        root=root,
        settings={"model": {"default": model}} if isinstance(model, str) and model else {},
        secrets={
            name: value
            for name, value in env.items()
            if isinstance(value, str) and is_secret_name(name)
        },
        soul=text_of(workspace / "SOUL.md"),
        memories={
            "memory": paragraphs(text_of(workspace / "MEMORY.md")),
            "user": paragraphs(text_of(workspace / "USER.md")),
        },
        skills=(*skill_folders(workspace / "skills"), *skill_folders(root / "skills")),
        problems=problems,
    )


def _read_config(
    path: Path, parse: Callable[[bytes], JsonObject]
) -> tuple[JsonObject, tuple[str, ...]]:
    """The settings of the other program, and why they cannot be read."""
    if not path.exists():
        return {}, ()
    try:
        return parse(path.read_bytes()), ()
    except (OSError, BadYaml, DecodeError) as error:
        return {}, (f"{path} cannot be read ({error}); its settings are skipped.",)


def paragraphs(text: str) -> tuple[str, ...]:
    """Markdown notes as entries: each list item, and each paragraph except headings."""
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
