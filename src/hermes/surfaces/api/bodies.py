"""The bodies that routes take. What is not named here is accepted and has no effect."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import JsonObject, Value
from hermes.config.kinds import Effort

Name = Annotated[str, Meta(min_length=1, max_length=128)]
ModelName = Annotated[str, Meta(max_length=256)]
Title = Annotated[str, Meta(max_length=200)]


class Nothing(Value):
    """A body of which nothing is needed."""


class StreamOptions(Value):
    include_usage: bool = False


class ModelOptions(Value):
    reasoning_effort: Effort | None = None


class Reasoning(Value):
    effort: Effort | None = None


class ChatMessage(Value):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[JsonObject] | None = None
    tool_calls: list[JsonObject] | None = None


class ChatBody(Value):
    messages: list[ChatMessage]
    model: ModelName | None = None
    provider: ModelName | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    reasoning_effort: Effort | None = None
    model_options: ModelOptions | None = None
    n: int | None = None
    tools: list[JsonObject] | None = None
    functions: list[JsonObject] | None = None


class ConversationName(Value):
    id: Name


class ResponseBody(Value):
    input: str | list[JsonObject]
    model: ModelName | None = None
    provider: ModelName | None = None
    instructions: str | None = None
    reasoning: Reasoning | None = None
    previous_response_id: Name | None = None
    conversation: Name | ConversationName | None = None
    store: bool | None = None
    stream: bool | None = None
    metadata: dict[str, str] | None = None
    tools: list[JsonObject] | None = None
    background: bool | None = None
    conversation_history: list[ChatMessage] | None = None


class RunBody(Value):
    input: str | list[JsonObject]
    session_id: Name | None = None
    instructions: str | None = None
    conversation_history: list[ChatMessage] | None = None
    previous_response_id: Name | None = None
    model: ModelName | None = None
    provider: ModelName | None = None
    model_options: ModelOptions | None = None
    toolsets: Annotated[list[Name], Meta(min_length=1, max_length=100)] | None = None


class ApprovalBody(Value):
    decision: Literal["once", "session", "always", "deny"]
    approval_id: Name | None = None


class AnswerBody(Value):
    text: Annotated[str, Meta(max_length=65_536)]
    question_id: Name | None = None


class SteerBody(Value):
    text: Annotated[str, Meta(min_length=1, max_length=65_536)]


class SessionBody(Value):
    id: Name | None = None


class SessionPatch(Value):
    title: Title | None = None


class ForkBody(Value):
    title: Title | None = None
    at_message: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None


class SessionChatBody(Value):
    input: str | list[JsonObject]
    images: Annotated[list[str], Meta(max_length=100)] | None = None
    model: ModelName | None = None
    provider: ModelName | None = None


class JobBody(Value):
    """What the scheduler takes; it checks the schedule itself."""

    name: Title
    prompt: Annotated[str, Meta(max_length=5_000)]
    schedule: Annotated[str, Meta(min_length=1, max_length=200)]


class JobPatch(Value):
    name: Title | None = None
    prompt: Annotated[str, Meta(max_length=5_000)] | None = None
    schedule: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    enabled: bool | None = None
