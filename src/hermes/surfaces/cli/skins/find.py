"""Finds a skin by name: a file of the user first, then the built-in ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes.codec.values import V
from hermes.core.errors import NotFound, UsageError
from hermes.surfaces.cli.skins.built_in import SKINS
from hermes.surfaces.cli.skins.skin import DEFAULT, Branding, Skin, Spinner, is_colour

FOLDER = "skins"
MOST_BYTES = 200_000


def skin_names(home: Path) -> dict[str, str]:
    """Name: description."""
    own = {path.stem: "your own" for path in sorted((home / FOLDER).glob("*.yaml"))}
    return {name: skin.description for name, skin in SKINS.items()} | own


def find_skin(name: str, home: Path) -> Skin:
    """Raises NotFound for an unknown name, UsageError for an unreadable file."""
    path = home / FOLDER / f"{name}.yaml"
    if "/" not in name and path.is_file():
        return read_skin(path)
    if name not in SKINS:
        raise NotFound(f"There is no skin {name!r}; there are {', '.join(skin_names(home))}.")
    return SKINS[name]


def read_skin(path: Path) -> Skin:
    """Missing and invalid values are taken from the default skin."""
    # The YAML library is slow to load, and few users have a skin file.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = path.read_text("utf-8")[:MOST_BYTES]
        raw = YAML(typ="safe").load(text)
    except (OSError, UnicodeError, YAMLError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"The skin {path} cannot be read ({reason}); fix the file.") from error
    given: dict[str, Any] = raw if isinstance(raw, dict) else {}
    prefix = given.get("tool_prefix")
    return Skin(
        name=path.stem,
        description=str(given.get("description") or ""),
        colors={name: value for name, value in _texts(given, "colors").items() if is_colour(value)},
        spinner=_read_section(Spinner, given.get("spinner")),
        branding=_read_section(Branding, given.get("branding")),
        tool_prefix=prefix if isinstance(prefix, str) and prefix.strip() else DEFAULT.tool_prefix,
        tool_emojis=_texts(given, "tool_emojis"),
        words=given.get("words") is True,
    )


def _texts(given: dict[str, Any], name: str) -> dict[str, str]:
    section = given.get(name)
    if not isinstance(section, dict):
        return {}
    return {str(key): value for key, value in section.items() if isinstance(value, str)}


def _read_section(kind: type[V], raw: object) -> V:
    """A section with its valid values."""
    given = raw if isinstance(raw, dict) else {}
    usual, values = kind(), dict[str, object]()
    for name in kind.__struct_fields__:
        value = given.get(name)
        if isinstance(getattr(usual, name), tuple):
            if isinstance(value, list):
                values[name] = tuple(str(each) for each in value)
        elif isinstance(value, str):
            values[name] = value
    return kind(**values)
