"""The persona of the agent: the user's SOUL.md and the personalities."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from hermes.codec.atomic_files import write_new
from hermes.config.home import Home
from hermes.config.settings import Settings
from hermes.context.project_files import Scan, cut_middle
from hermes.core.commands import Overlay
from hermes.core.errors import NotFound
from hermes.core.events import PersonalityChanged

STARTER = """\
<!-- Who Hermes is for you. What you write below this line takes the place of
the built-in introduction in every new session: a name, a manner, what matters.
As long as there is nothing, the built-in one is used. -->
"""


def write_default_soul(home: Home) -> None:
    """Write a template SOUL.md for the user to edit; never overwrite an existing one."""
    # A read-only home has none.
    with suppress(OSError):
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_new(home.soul, STARTER.encode(), durable=False)


def has_persona(home: Home) -> bool:
    """Return whether the user has written a persona."""
    return bool(_persona(home))


def read_soul(home: Home, limit: int, scan: Scan) -> str:
    """Return the user's persona, scanned and limited in length; "" if there is none."""
    text = _persona(home)
    return cut_middle(scan(home.soul.name, text), limit, str(home.soul))[0] if text else ""


def _persona(home: Home) -> str:
    try:
        text = home.soul.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return text.removeprefix(STARTER.strip()).strip()


NO_PERSONALITY = ("none", "default", "neutral", "off")
BUILT_IN_PERSONALITIES = {
    "helpful": "Be warm and helpful. Anticipate what the user needs next and offer it.",
    "concise": "Answer as briefly as the topic allows. No preamble, no closing summary.",
    "technical": "Speak to an expert: exact terms, precise numbers, trade-offs, no simplification.",
    "creative": "Look for unusual angles. Offer several ideas and vivid pictures before settling.",
    "teacher": "Explain step by step, from the known to the new, with an example; check now and "
    "then that it was understood.",
    "kawaii": "Be sweet and cheerful, with soft words and a little sparkle (◕‿◕), and still exact.",
    "catgirl": "Be a playful cat-eared helper who says nya now and then, curious and attentive.",
    "pirate": "Talk like a seasoned pirate, arr, with the sea in every other phrase; facts stay "
    "ship-shape.",
    "shakespeare": "Speak in the manner of an Elizabethan play, with thee and thou and a fine turn "
    "of phrase, yet let the matter be plain.",
    "surfer": "Be laid-back, friendly and full of surf talk. No stress, all signal.",
    "noir": "Narrate like a tired detective in a rainy city: short sentences, dry wit, hard facts.",
    "uwu": "Wwite in a soft uwu way with gentle stammews, but keep code, names and numbews exact.",
    "philosopher": "Reflect before you answer: ask what the question assumes, weigh both sides, "
    "then say what follows in practice.",
    "hype": "Bring energy! Celebrate progress and push onwards, without ever overstating a result.",
}


def all_personalities(own: Mapping[str, object]) -> dict[str, str]:
    """Return all personalities by name; the user's override built-in ones."""
    return BUILT_IN_PERSONALITIES | {
        name.lower(): text for name, value in own.items() if (text := personality_text(value))
    }


def personality_text(value: object) -> str:
    """Return the text of a personality: a string, or the joined `system_prompt`, `tone` and
    `style`."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, Mapping):
        return ""
    labels = {"system_prompt": "", "tone": "Tone: ", "style": "Style: "}
    parts = (f"{label}{value[name]}" for name, label in labels.items() if value.get(name))
    return "\n".join(parts).strip()


def find_personality(name: str, own: Mapping[str, object]) -> tuple[str, str]:
    """Return the stored name and the text of a personality, both empty for "none". Raises
    NotFound."""
    plain = name.strip().lower()
    if not plain or plain in NO_PERSONALITY:
        return "", ""
    there = all_personalities(own)
    if plain not in there:
        names = ", ".join(sorted(there))
        raise NotFound(f"There is no personality {name!r}. Available: {names}.", tuple(there))
    return plain, there[plain]


def personality_names(settings: Settings) -> list[str]:
    return sorted(all_personalities(_own(settings)))


def personality_overlay(settings: Settings, name: str) -> Overlay:
    """Return the overlay for a personality; "none" removes the current one. Raises NotFound."""
    found, text = find_personality(name, _own(settings))
    return Overlay(name=found, text=text)


def _own(settings: Settings) -> dict[str, object]:
    return settings.agent.personalities | settings.personalities


def chosen_personality(settings: Settings) -> PersonalityChanged | None:
    """Return the personality of new sessions, if the settings name an existing one."""
    if not settings.display.personality:
        return None
    try:
        found = personality_overlay(settings, settings.display.personality)
    except NotFound:
        return None
    return PersonalityChanged(name=found.name, text=found.text) if found.text else None
