"""A skin: colours, symbols and words of the chat."""

from __future__ import annotations

import re

from hermes.codec.values import Value

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
