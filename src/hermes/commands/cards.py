"""Formats what is known about a model."""

from __future__ import annotations

from hermes.commands.amounts import format_count
from hermes.models.shelf import ModelCard


def describe_model(card: ModelCard) -> str:
    """Context window, price, vision and tool support, as far as known."""
    parts = [f"window {format_count(card.window)}" if card.window else "window unknown"]
    parts.append(describe_price(card))
    if card.vision is not None:
        parts.append("sees pictures" if card.vision else "no pictures")
    if card.tools is False:
        parts.append("no tools")
    return ", ".join(parts)


def describe_price(card: ModelCard) -> str:
    if card.included:
        return "no charge per token"
    if card.price_input is None or card.price_output is None:
        return "price unknown"
    if not card.price_input and not card.price_output:
        return "free"
    return f"{_dollars(card.price_input)} in / {_dollars(card.price_output)} out per M"


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.3g}"
