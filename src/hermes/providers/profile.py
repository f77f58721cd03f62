"""What one model on one endpoint can do and how it wants to be asked: quirks as data."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import JsonObject, Value
from hermes.providers.prices import Price, PriceSource

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
    """Every field has the value that suits an unknown model.

    window         tokens of prompt and answer together
    max_output     ceiling of tokens of one answer; None is not known
    usual_output   the ceiling to ask for when nobody wishes one; None leaves it to the endpoint
    output_field   how the chat format names the ceiling
    effort         how the wish for more or less thought is written
    efforts        the levels that the model knows, weakest first; none: it takes no level
    marks          where prompt-cache marks go
    replay         how earlier reasoning is sent back to who issued it
    developer      the system text has the role `developer` in the chat format
    images         pictures may be sent at all
    image_results  pictures may be part of a tool result
    tools          tools may be offered; None is not known
    tool_calls     the style of calls that are written as text; "" when the endpoint has native ones
    streams        the endpoint can stream
    patterns       tool schemas may hold `pattern` and `format`
    schemas        how much of JSON Schema tool schemas may use
    ascii          everything beyond plain ASCII is escaped, control characters are replaced
    says_name      the system text ends with the model's name, which it gets wrong otherwise
    conversation_field, conversation_header
                   where requests of one conversation carry its id, so that caches are found again
    conversation   that id; "" is made of the beginning of the conversation
    initiator      the header that tells calls for a person ("user") from those in between ("agent")
    omit           top-level request fields that the endpoint refuses
    extra          top-level request fields that the endpoint wants
    price          None is not known; `price_source` is where it comes from
    included       calls cost nothing: a subscription, or a machine of one's own
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
    price: Price | None = None
    price_source: PriceSource = "none"
    included: bool = False
