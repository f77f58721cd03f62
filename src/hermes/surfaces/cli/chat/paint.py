"""Colours and language of the chat, by role."""

from __future__ import annotations

from typing import Literal

from hermes.commands.language import ENGLISH, Translator
from hermes.surfaces.cli.skins.skin import DEFAULT, Skin, colour_code

Role = Literal[
    "plain", "dim", "bold", "accent", "prompt", "ok", "warn", "error", "added", "removed", "chosen"
]

_CODES: dict[Role, str] = {
    "dim": "2",
    "bold": "1",
    "accent": "36",
    "prompt": "36",
    "ok": "32",
    "warn": "33",
    "error": "31",
    "added": "32",
    "removed": "31",
    "chosen": "7",
}


# The skin colour of each role.
_KEYS: dict[Role, str] = {
    "dim": "banner_dim",
    "bold": "banner_title",
    "accent": "ui_accent",
    "prompt": "prompt",
    "ok": "ui_ok",
    "warn": "ui_warn",
    "error": "ui_error",
    "added": "ui_ok",
    "removed": "ui_error",
}


class Paint:
    """`paint(text, role)` colours the text line by line, if `colours` is set. `skin` is the current
    skin, `say` the current language."""

    def __init__(self, *, colours: bool) -> None:
        self.colours = colours
        self.skin = DEFAULT
        self.say: Translator = ENGLISH
        self._codes = _CODES

    def apply_skin(self, skin: Skin) -> None:
        own = {
            role: _role_code(role, skin.colors[key])
            for role, key in _KEYS.items()
            if key in skin.colors
        }
        self.skin, self._codes = skin, _CODES | own

    def __call__(self, text: str, role: Role) -> str:
        code = self._codes.get(role)
        if not self.colours or not code or not text:
            return text
        # A colour across a line break would also fill the margin of the next line.
        lines = text.split("\n")
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in lines)


def _role_code(role: Role, colour: str) -> str:
    """Titles stay bold."""
    code = colour_code(colour)
    return f"1;{code}" if role == "bold" and code else code
