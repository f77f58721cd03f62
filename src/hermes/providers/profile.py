"""The abilities and quirks of one model at one endpoint, as data."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import JsonObject, Value
from hermes.providers.prices import ModelPrice, PriceSource

WireName = Literal["chat", "responses", "messages"]
OutputField = Literal["max_tokens", "max_completion_tokens"]
EffortStyle = Literal[
    "none", "responses", "adaptive", "budget", "envelope", "envelope_on", "flat", "template",
    "think", "toggle", "toggle_effort", "enable_thinking", "google",
]  # fmt: skip
MarkStyle = Literal["off", "envelope", "native"]
MarkLife = Literal["5m", "1h"]
Replay = Literal["none", "sealed", "reasoning_content", "reasoning_details", "extra_content"]
SchemaStyle = Literal["full", "reduced"]


class ModelProfile(Value):
    """The default of every field suits an unknown model.

    window         tokens of prompt and reply together
    max_output     output limit in tokens; None is unknown
    usual_output   the output limit to request by default; None leaves it to the endpoint
    output_field   the chat format's name of the output limit
    effort         how the reasoning effort is encoded
    efforts        the effort levels the model supports, weakest first; empty: none
    marks          where prompt-cache marks go
    replay         how earlier reasoning is sent back to its issuer
    developer      the system text has the role `developer` in the chat format
    images         images may be sent
    image_results  images may be part of a tool result
    tools          tools may be offered; None is unknown
    tool_calls     the style of calls written as text; "" if the endpoint has native calls
    streams        the endpoint can stream
    patterns       tool schemas may contain `pattern` and `format`
    schemas        the JSON Schema subset for tool schemas
    ascii          non-ASCII is escaped, control characters are replaced
    says_name      the system text ends with the model's name, which it would misreport
    conversation_field, conversation_header
                   the field and header for the conversation id, used for cache routing
    conversation   that id; "" derives it from the start of the conversation
    initiator      the header that distinguishes user requests ("user") from follow-ups ("agent")
    omit           top-level request fields that the endpoint refuses
    extra          top-level request fields that the endpoint requires
    price          None is unknown; `price_source` is its origin
    included       calls cost nothing: a subscription or a local model
    """

    window: int = 256_000
    max_output: int | None = None
    usual_output: int | None = None
    output_field: OutputField = "max_tokens"
    effort: EffortStyle = "none"
    efforts: tuple[str, ...] = ("low", "medium", "high")
    marks: MarkStyle = "off"
    replay: Replay = "none"
    developer: bool = False
    images: bool = True
    image_results: bool = True
    tools: bool | None = None
    tool_calls: str = ""
    streams: bool = True
    patterns: bool = True
    schemas: SchemaStyle = "full"
    ascii: bool = False
    says_name: bool = False
    conversation_field: str = ""
    conversation_header: str = ""
    conversation: str = ""
    initiator: str = ""
    omit: tuple[str, ...] = ()
    extra: JsonObject = {}
    price: ModelPrice | None = None
    price_source: PriceSource = "none"
    included: bool = False
