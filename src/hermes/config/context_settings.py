"""Settings about what a model sees: compaction, personalities, hints, the tools behind a search."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.kinds import Count, Positive

Share = Annotated[float, Meta(gt=0)]


class CompressionSettings(Value):
    """When a long conversation is shortened, and what stays as it is."""

    enabled: Annotated[bool, "Shorten conversations before they fill the window."] = True
    threshold: Annotated[Share, "Share of the window from which on; small windows take more."] = 0.5
    target_ratio: Annotated[Share, "Share of that for the newest messages."] = 0.2
    protect_last_n: Annotated[Count, "Newest messages that stay, as far as there is room."] = 20
    abort_on_summary_failure: Annotated[
        bool, "Without a summary only prune, and stop when that is not enough."
    ] = False
    hygiene_hard_message_limit: Annotated[Positive, "Messages from which on to shorten."] = 5_000
    model_thresholds: Annotated[
        dict[str, float], "Thresholds for models whose name contains this."
    ] = {}


class ContextSettings(Value):
    engine: Annotated[str, "What shortens conversations; plugins may bring others."] = "compressor"
    direct_tool_tokens: Annotated[
        Count, "Tokens of tools that every request names; the others are found by search."
    ] = 2_250
