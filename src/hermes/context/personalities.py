"""Personalities: built-in and user-defined speaking styles."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.core.errors import NotFound

NONE = ("none", "default", "neutral", "off")
BUILT_IN = {
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
    """Returns all personalities by name; the user's override built-in ones."""
    return BUILT_IN | {
        name.lower(): text for name, value in own.items() if (text := personality_text(value))
    }


def personality_text(value: object) -> str:
    """Returns a string, or the joined `system_prompt`, `tone` and `style`."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, Mapping):
        return ""
    labels = {"system_prompt": "", "tone": "Tone: ", "style": "Style: "}
    parts = (f"{label}{value[name]}" for name, label in labels.items() if value.get(name))
    return "\n".join(parts).strip()


def find_personality(name: str, own: Mapping[str, object]) -> tuple[str, str]:
    """Returns the stored name and text, both empty for none; NotFound."""
    plain = name.strip().lower()
    if not plain or plain in NONE:
        return "", ""
    there = all_personalities(own)
    if plain not in there:
        names = ", ".join(sorted(there))
        raise NotFound(f"There is no personality {name!r}. Available: {names}.", tuple(there))
    return plain, there[plain]
