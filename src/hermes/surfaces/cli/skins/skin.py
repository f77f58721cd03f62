"""Skins: colours, symbols and words of the chat; built-in ones and files of the user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hermes.codec.values import V, Value
from hermes.core.errors import NotFound, UsageError

# The eight colours that every terminal has.
NAMED = {
    "black": 0,
    "red": 1,
    "green": 2,
    "yellow": 3,
    "blue": 4,
    "magenta": 5,
    "cyan": 6,
    "white": 7,
}
_HEX = re.compile(r"#([0-9a-fA-F]{6})")
_LEVELS = (0, 95, 135, 175, 215, 255)


class Spinner(Value):
    """`frames` is the animation, with a face and a verb beside it. Without frames nothing moves."""

    frames: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    waiting_faces: tuple[str, ...] = ("(・_・)", "(¬‿¬)", "(°ロ°)")
    thinking_faces: tuple[str, ...] = ("(⌐■_■)", "(・・?)", "(￣ー￣)")
    thinking_verbs: tuple[str, ...] = ("thinking",)


class Branding(Value):
    prompt_symbol: str = "❯"
    busy_symbol: str = "⚕ ❯"
    status_symbol: str = "⚕"


class Skin(Value):
    """With `words`, nothing depends on a symbol or a colour, for screen readers."""

    name: str = "default"
    description: str = ""
    colors: dict[str, str] = {}
    spinner: Spinner = Spinner()
    branding: Branding = Branding()
    tool_prefix: str = "┊"
    tool_emojis: dict[str, str] = {}
    words: bool = False


DEFAULT = Skin(description="The default.")


def is_colour(text: str) -> bool:
    return text in NAMED or _HEX.fullmatch(text) is not None or text == ""


def colour_code(text: str) -> str:
    """The escape code of a colour: a name, or `#rrggbb` as the nearest of 256."""
    if text in NAMED:
        return str(30 + NAMED[text])
    found = _HEX.fullmatch(text)
    if found is None:
        return ""
    value = int(found[1], 16)
    red, green, blue = (_nearest(value >> shift & 255) for shift in (16, 8, 0))
    return f"38;5;{16 + 36 * red + 6 * green + blue}"


def _nearest(part: int) -> int:
    return min(range(len(_LEVELS)), key=lambda n: abs(_LEVELS[n] - part))


_SILENT = Spinner(frames="", waiting_faces=(), thinking_faces=())

SKINS = {
    skin.name: skin
    for skin in (
        DEFAULT,
        Skin(
            name="plain",
            description="Words only: no animation and no meaningful colours; suits screen readers.",
            colors=dict.fromkeys(
                (
                    "banner_dim",
                    "ui_accent",
                    "ui_ok",
                    "ui_warn",
                    "ui_error",
                    "prompt",
                ),
                "",
            ),
            spinner=_SILENT,
            branding=Branding(prompt_symbol=">", busy_symbol="busy >", status_symbol="status:"),
            tool_prefix="tool:",
            words=True,
        ),
        Skin(
            name="mono",
            description="Only the terminal's own colours; no animation.",
            colors=dict.fromkeys(("ui_accent", "ui_ok", "ui_warn", "ui_error", "prompt"), ""),
            spinner=_SILENT,
        ),
        Skin(
            name="slate",
            description="Cool greys and blues, and no faces.",
            colors={
                "ui_accent": "#5f87af",
                "prompt": "#5f87af",
                "banner_title": "#afd7ff",
                "ui_ok": "#87afaf",
                "ui_warn": "#d7af87",
                "ui_error": "#d75f5f",
            },
            spinner=Spinner(frames="▁▃▄▅▆▇▆▅▄▃", waiting_faces=(), thinking_faces=()),
        ),
        Skin(
            name="daylight",
            description="Dark letters for a light background.",
            colors={
                "banner_dim": "#5f5f5f",
                "ui_accent": "#005faf",
                "prompt": "#005faf",
                "ui_ok": "#005f00",
                "ui_warn": "#875f00",
                "ui_error": "#af0000",
            },
        ),
        Skin(
            name="warm-lightmode",
            description="Earth colours for a light background.",
            colors={
                "banner_dim": "#875f5f",
                "ui_accent": "#af5f00",
                "prompt": "#af5f00",
                "ui_ok": "#5f5f00",
                "ui_warn": "#af5f00",
                "ui_error": "#870000",
            },
            spinner=Spinner(frames="◐◓◑◒"),
        ),
        Skin(
            name="ares",
            description="Red and bronze; military verbs.",
            colors={
                "ui_accent": "#d75f00",
                "prompt": "#d70000",
                "banner_title": "#d7af5f",
                "ui_warn": "#ffaf00",
            },
            spinner=Spinner(
                frames="⚔†⚔‡",
                waiting_faces=("(ง'̀-'́)ง", "(•̀_•́)"),
                thinking_faces=("(ಠ_ಠ)", "(¬_¬)"),
                thinking_verbs=("scouting", "marshalling", "planning the assault"),
            ),
            branding=Branding(prompt_symbol="⟩", busy_symbol="⚔ ⟩", status_symbol="⚔"),
        ),
        Skin(
            name="poseidon",
            description="Deep blues; nautical verbs.",
            colors={
                "ui_accent": "#00afd7",
                "prompt": "#0087d7",
                "banner_title": "#87d7ff",
                "ui_ok": "#00af87",
            },
            spinner=Spinner(
                frames="≈∼≋∼",
                waiting_faces=("(˘⌣˘)", "(・ω・)"),
                thinking_faces=("(。-ω-)", "(~_~)"),
                thinking_verbs=("sounding the depths", "drifting", "charting"),
            ),
            branding=Branding(prompt_symbol="≋", busy_symbol="≈ ≋", status_symbol="≈"),
        ),
        Skin(
            name="kawaii",
            description="Pink, with many faces.",
            colors={"ui_accent": "#ff87d7", "prompt": "#ff87d7", "banner_title": "#ffafd7"},
            spinner=Spinner(
                frames="✶✷✸✹✺✹✸✷",
                waiting_faces=("(◕‿◕)", "(ノ◕ヮ◕)ノ", "(๑˃ᴗ˂)", "ʕ•ᴥ•ʔ"),
                thinking_faces=("(｡•̀ᴗ-)", "(⁄˘⌣˘⁄)", "(◔_◔)", "(´･ᴗ･`)"),
                thinking_verbs=("pondering", "daydreaming", "musing", "wondering", "brewing"),
            ),
        ),
    )
}


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
