"""Skins: colours, symbols and words of the chat; built-in ones and files of the user."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from hermes.codec.values import V, Value
from hermes.core.errors import NotFound, UsageError

# The eight colours that every terminal has, in the order of their codes.
NAMED = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_HEX = re.compile(r"#([0-9a-fA-F]{6})")
_LEVELS = (0, 95, 135, 175, 215, 255)


class Spinner(Value):
    """The animation of a running turn: `frames`, with a face and a verb beside them. Without
    frames nothing moves."""

    frames: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    waiting_faces: tuple[str, ...] = ("(・_・)", "(¬‿¬)", "(°ロ°)")
    thinking_faces: tuple[str, ...] = ("(⌐■_■)", "(・・?)", "(￣ー￣)")
    thinking_verbs: tuple[str, ...] = ("thinking",)


class Branding(Value):
    prompt_symbol: str = "❯"
    busy_symbol: str = "⚕ ❯"
    status_symbol: str = "⚕"


class Skin(Value):
    """The colours and symbols of the chat."""

    name: str = "default"
    description: str = ""
    colors: dict[str, str] = {}
    spinner: Spinner = Spinner()
    branding: Branding = Branding()
    tool_prefix: str = "┊"
    tool_emojis: dict[str, str] = {}
    # Shows words instead of symbols and colours, for screen readers.
    words: bool = False


DEFAULT = Skin(description="The default.")


def is_colour(text: str) -> bool:
    return text in NAMED or _HEX.fullmatch(text) is not None or text == ""


def colour_code(text: str) -> str:
    """The escape code of a colour: a name, or `#rrggbb` as the nearest of 256."""
    if text in NAMED:
        return str(30 + NAMED.index(text))
    found = _HEX.fullmatch(text)
    if found is None:
        return ""
    value = int(found[1], 16)

    def nearest(part: int) -> int:
        return min(range(len(_LEVELS)), key=lambda n: abs(_LEVELS[n] - part))

    red, green, blue = (nearest(value >> shift & 255) for shift in (16, 8, 0))
    return f"38;5;{16 + 36 * red + 6 * green + blue}"


BUILT_IN = Path(__file__).with_name("skins.json")
FOLDER = "skins"
MOST_BYTES = 200_000


@cache
def built_in_skins() -> dict[str, Skin]:
    # The default skin needs no file.
    from hermes.codec.json import decode

    return {DEFAULT.name: DEFAULT, **decode(dict[str, Skin], BUILT_IN.read_bytes())}


def skin_names(home: Path) -> dict[str, str]:
    """Name: description."""
    own = {path.stem: "your own" for path in sorted((home / FOLDER).glob("*.yaml"))}
    return {name: skin.description for name, skin in built_in_skins().items()} | own


def find_skin(name: str, home: Path) -> Skin:
    """Load a skin. Raises NotFound for an unknown name, UsageError for an unreadable file."""
    path = home / FOLDER / f"{name}.yaml"
    if "/" not in name and path.is_file():
        return read_skin(path)
    if name == DEFAULT.name:
        return DEFAULT
    if name not in built_in_skins():
        raise NotFound(f"There is no skin {name!r}; choose one of {', '.join(skin_names(home))}.")
    return built_in_skins()[name]


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
        raise UsageError(f"The skin {path} cannot be read ({reason}); correct the file.") from error
    fields: dict[str, Any] = raw if isinstance(raw, dict) else {}
    prefix = fields.get("tool_prefix")
    return Skin(
        name=path.stem,
        description=str(fields.get("description") or ""),
        colors={
            name: value for name, value in _texts(fields, "colors").items() if is_colour(value)
        },
        spinner=_read_section(Spinner, fields.get("spinner")),
        branding=_read_section(Branding, fields.get("branding")),
        tool_prefix=prefix if isinstance(prefix, str) and prefix.strip() else DEFAULT.tool_prefix,
        tool_emojis=_texts(fields, "tool_emojis"),
        words=fields.get("words") is True,
    )


def _texts(fields: dict[str, Any], name: str) -> dict[str, str]:
    section = fields.get(name)
    if not isinstance(section, dict):
        return {}
    return {str(key): value for key, value in section.items() if isinstance(value, str)}


def _read_section(kind: type[V], raw: object) -> V:
    """A section with its valid values."""
    fields = raw if isinstance(raw, dict) else {}
    usual, values = kind(), dict[str, object]()
    for name in kind.__struct_fields__:
        value = fields.get(name)
        if isinstance(getattr(usual, name), tuple):
            if isinstance(value, list):
                values[name] = tuple(str(each) for each in value)
        elif isinstance(value, str):
            values[name] = value
    return kind(**values)
