"""Settings of compaction and of the model's context."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hermes.codec.values import Value
from hermes.config.kinds import Count, Positive

Share = Annotated[float, Meta(gt=0)]


class CompressionSettings(Value):
    """When a long conversation is compacted, and what stays verbatim."""

    enabled: Annotated[bool, "Compact conversations before they fill the context window."] = True
    threshold: Annotated[
        Share, "Share of the window that triggers compaction; more for small windows."
    ] = 0.5
    target_ratio: Annotated[Share, "Share of the threshold that the newest messages may use."] = 0.2
    protect_last_n: Annotated[Count, "Newest messages kept verbatim, if they fit."] = 20
    abort_on_summary_failure: Annotated[
        bool, "If the summary fails, only prune; end the turn if that is not enough."
    ] = False
    hygiene_hard_message_limit: Annotated[
        Positive, "Number of messages that triggers compaction."
    ] = 5_000
    model_thresholds: Annotated[dict[str, float], "Thresholds by part of a model name."] = {}


class ContextSettings(Value):
    engine: Annotated[str, "Compaction engine; plugins may add others."] = "compressor"
    direct_tool_tokens: Annotated[
        Count, "Tokens of tool schemas in every request; other tools are found by `tool_search`."
    ] = 2_250
