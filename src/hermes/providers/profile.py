"""What one model on one endpoint can do and how it wants to be asked: quirks as data."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import JsonObject, Value

WireName = Literal["chat", "responses", "messages"]
OutputField = Literal["max_tokens", "max_completion_tokens"]
EffortStyle = Literal[
    "none", "responses", "adaptive", "budget", "envelope", "flat", "template", "think"
]
MarkStyle = Literal["off", "envelope", "native"]
MarkLife = Literal["5m", "1h"]
Replay = Literal["none", "sealed", "reasoning_content", "reasoning_details"]


class ModelProfile(Value):
    """Every field has the value that suits an unknown model.

    window         tokens of prompt and answer together
    max_output     ceiling of tokens of one answer; None is not known
    output_field   how the chat format names the ceiling
    effort         how the wish for more or less thought is written
    efforts        the levels that the model knows, weakest first
    marks          where prompt-cache marks go
    replay         how earlier reasoning is sent back to who issued it
    developer      the system text has the role `developer` in the chat format
    images         pictures may be sent at all
    image_results  pictures may be part of a tool result
    streams        the endpoint can stream
    patterns       tool schemas may hold `pattern` and `format`
    ascii          everything beyond plain ASCII is escaped, control characters are dropped
    omit           top-level request fields that the endpoint refuses
    extra          top-level request fields that the endpoint wants
    """

    window: int = 256_000
    max_output: int | None = None
    output_field: OutputField = "max_tokens"
    effort: EffortStyle = "none"
    efforts: tuple[str, ...] = ("low", "medium", "high")
    marks: MarkStyle = "off"
    replay: Replay = "none"
    developer: bool = False
    images: bool = True
    image_results: bool = True
    streams: bool = True
    patterns: bool = True
    ascii: bool = False
    omit: tuple[str, ...] = ()
    extra: JsonObject = {}
