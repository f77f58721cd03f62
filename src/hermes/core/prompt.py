"""Requests to a provider, and the items that it yields."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.codec.values import IdentityCache, JsonObject, Value
from hermes.core.messages import AssistantMessage, Message, Usage


class ToolSpec(Value):
    """A tool as the model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


tool_sizes: IdentityCache[tuple[ToolSpec, ...], tuple[int, ...]] = IdentityCache(
    lambda tools: tuple([len(encode(tool)) for tool in tools])
)
"""The size of each tool as JSON, in bytes."""


class Prompt(Value):
    """One request to a model."""

    system: str
    # Within a session, these only grow at the end.
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    effort: str = ""
    # Forbids calls but keeps the tools, so that the prefix stays the same.
    text_only: bool = False


class TextDelta(Value, tag="text_delta"):
    text: str


class ReasoningDelta(Value, tag="reasoning_delta"):
    text: str


class CallNamed(Value, tag="call_named"):
    """The model has begun a call of this tool."""

    name: str


class Notice(Value, tag="notice"):
    """A line for the user that is not part of the conversation. `kind` is "lifecycle", "warn", or
    "wait" for what makes the user wait for long."""

    text: str
    kind: str = "lifecycle"


class Restarted(Value, tag="restarted"):
    """The text streamed for this reply so far is void; the reply starts again."""


Delta = TextDelta | ReasoningDelta | CallNamed | Notice | Restarted


class Reply(Value):
    """A complete reply, yielded once and last, with the model and provider that answered."""

    message: AssistantMessage
    usage: Usage
    model: str
    provider: str
