"""The request bodies. Unknown fields are accepted and ignored."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import JsonObject, Value
from hermes.config.kinds import Effort

Name = Annotated[str, Meta(min_length=1, max_length=128)]
ModelName = Annotated[str, Meta(max_length=256)]
Title = Annotated[str, Meta(max_length=200)]
Tier = Annotated[str, Meta(max_length=32, pattern="^[a-z_-]*$")]


class EmptyBody(Value):
    """A body without required fields."""


class StreamOptions(Value):
    include_usage: bool = False


class ModelOptions(Value):
    reasoning_effort: Effort | None = None
    service_tier: Tier | None = None


class ReasoningOptions(Value):
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
    service_tier: Tier | None = None
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
    reasoning: ReasoningOptions | None = None
    service_tier: Tier | None = None
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
    reason: Annotated[str, Meta(max_length=1_000)] | None = None


class AnswerBody(Value):
    text: Annotated[str, Meta(max_length=65_536)]
    question_id: Name | None = None


class SteerBody(Value):
    text: Annotated[str, Meta(min_length=1, max_length=65_536)]


class SessionBody(Value):
    id: Name | None = None


class SessionPatch(Value):
    title: Title | None = None
    archived: bool | None = None


class ForkBody(Value):
    title: Title | None = None
    at_message: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None


class SessionChatBody(Value):
    input: str | list[JsonObject]
    images: Annotated[list[str], Meta(max_length=100)] | None = None
    model: ModelName | None = None
    provider: ModelName | None = None


Prompt = Annotated[str, Meta(min_length=1, max_length=5_000)]
ScheduleText = Annotated[str, Meta(min_length=1, max_length=200)]
Skills = Annotated[list[Title], Meta(max_length=50)]
Times = Annotated[int, Meta(ge=0, le=1_000_000)]


class JobBody(Value, forbid_unknown_fields=True):
    prompt: Prompt
    schedule: ScheduleText
    name: Title | None = None
    deliver: Title | None = None
    skills: Skills | None = None
    repeat: Times | None = None
    model: Title | None = None
    provider: Title | None = None
    paused: bool | None = None


class JobPatch(Value, forbid_unknown_fields=True):
    prompt: Prompt | None = None
    schedule: ScheduleText | None = None
    name: Title | None = None
    deliver: Title | None = None
    skills: Skills | None = None
    repeat: Times | None = None
    enabled: bool | None = None
    model: Title | None = None
    provider: Title | None = None


class PauseBody(Value):
    reason: Title | None = None
