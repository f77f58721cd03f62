"""What a provider is asked and what it yields."""

from __future__ import annotations

from hermes.codec.identity import ByIdentity
from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.core.messages import AssistantMessage, Message, Usage


class ToolSpec(Value):
    """A tool as the model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


def _sizes(tools: tuple[ToolSpec, ...]) -> tuple[int, ...]:
    return tuple([len(encode(tool)) for tool in tools])


tool_sizes: ByIdentity[tuple[ToolSpec, ...], tuple[int, ...]] = ByIdentity(_sizes)
"""How many bytes of JSON each of these tools is."""


class Prompt(Value):
    """One request. `messages` only ever grows at its end within a session. `words_only` forbids
    calls but keeps the tools, so that the beginning of the request stays the same."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    effort: str = ""
    words_only: bool = False


class TextDelta(Value, tag="text_delta"):
    text: str


class ReasoningDelta(Value, tag="reasoning_delta"):
    text: str


class CallNamed(Value, tag="call_named"):
    """The model has begun to write a call of this tool."""

    name: str


class Notice(Value, tag="notice"):
    """News for the person while a call is under way. `kind` is "lifecycle" or "warn"."""

    text: str
    kind: str = "lifecycle"


class Restarted(Value, tag="restarted"):
    """What was streamed for this reply so far is void; it comes anew."""


Delta = TextDelta | ReasoningDelta | CallNamed | Notice | Restarted


class Reply(Value):
    """A whole answer, yielded once, last, with who really gave it."""

    message: AssistantMessage
    usage: Usage
    model: str
    provider: str
