"""What vendors understand beyond the types of the libraries, vendor by vendor.

A request is right when one vendor of its wire understands all of it. A new field of ours belongs
into the row of whoever documents it; a field in no row is a slip.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from openai.types.chat import (
    ChatCompletionContentPartImageParam,
    ChatCompletionContentPartTextParam,
)
from pydantic import ConfigDict
from typing_extensions import TypedDict

from hermes.testing.wires.table import WireName
from tests.judges.strict_types import Changes


class Mark(TypedDict):
    """The cache mark of the messages wire, as aggregators pass it on."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    type: Literal["ephemeral"]
    ttl: NotRequired[Literal["5m", "1h"]]


class Effort(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    enabled: bool
    effort: NotRequired[Literal["minimal", "low", "medium", "high", "xhigh", "max"]]


class Template(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    enable_thinking: bool


class Toggle(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    type: Literal["enabled", "disabled"]


class Thinking(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    include_thoughts: bool
    thinking_level: NotRequired[Literal["low", "medium", "high"]]
    thinking_budget: NotRequired[int]


class Google(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    thinking_config: Thinking


class ExtraBody(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    google: Google


class Signature(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    thought_signature: str


class Signed(TypedDict):
    """What a thought led to is signed at its first call."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    google: Signature


_BODIES = ("CompletionCreateParamsNonStreaming", "CompletionCreateParamsStreaming")
_TEXT = "ChatCompletionContentPartTextParam"
_ASSISTANT = "ChatCompletionAssistantMessageParam"
_SHOWN = list[ChatCompletionContentPartTextParam | ChatCompletionContentPartImageParam]
# OpenAI's own chat endpoint has pictures in user messages only.
_PICTURES_IN_RESULTS = {"ChatCompletionToolMessageParam": {"content": str | _SHOWN}}


def _top(**fields: Any) -> dict[str, dict[str, Any]]:
    return {name: dict(fields) for name in _BODIES}


CHAT = {
    "openai": Changes(),
    "openrouter": Changes(
        fields={
            **_top(reasoning=Effort, provider=dict[str, Any], session_id=str),
            **_PICTURES_IN_RESULTS,
            _TEXT: {"cache_control": Mark},
            _ASSISTANT: {"reasoning_details": list[dict[str, Any]]},
        }
    ),
    "deepseek": Changes(
        fields={
            **_top(thinking=Toggle, reasoning_effort=Literal["low", "medium", "high", "max"]),
            _ASSISTANT: {"reasoning_content": str},
            **_PICTURES_IN_RESULTS,
        }
    ),
    "alibaba": Changes(fields={**_top(enable_thinking=bool), **_PICTURES_IN_RESULTS}),
    "google": Changes(
        fields={
            **_top(extra_body=ExtraBody),
            "ChatCompletionMessageFunctionToolCallParam": {"extra_content": Signed},
            **_PICTURES_IN_RESULTS,
        }
    ),
    "vllm": Changes(fields={**_top(chat_template_kwargs=Template), **_PICTURES_IN_RESULTS}),
    "ollama": Changes(fields={**_top(think=bool, options=dict[str, int]), **_PICTURES_IN_RESULTS}),
}

RESPONSES = {
    # Nothing of ours is stored there (`store` is false), so nothing of ours has an id there: the
    # types describe items as the server hands them out.
    "openai": Changes(
        optional={
            "ResponseOutputMessageParam": ("id", "status"),
            "ResponseOutputTextParam": ("annotations",),
            "ResponseReasoningItemParam": ("id",),
        }
    ),
}

MESSAGES = {
    "anthropic": Changes(),
    # Models of others still take what Claude does not take any more.
    "others": Changes(
        fields={
            "MessageCreateParamsNonStreaming": {"temperature": float},
            "MessageCreateParamsStreaming": {"temperature": float},
        }
    ),
}

VENDORS: dict[WireName, dict[str, Changes]] = {
    "chat": CHAT,
    "responses": RESPONSES,
    "messages": MESSAGES,
}

# The vendors of the catalogue that understand more than the types say, each by its row here.
SPEAKS: dict[str, tuple[str, ...]] = {
    "ai-gateway": ("openrouter",),
    "alibaba": ("alibaba",),
    "alibaba-coding-plan": ("alibaba",),
    "custom": ("ollama",),
    "deepinfra": ("deepseek",),
    "deepseek": ("deepseek",),
    "fireworks": ("deepseek",),
    "gemini": ("google",),
    "gmi": ("deepseek",),
    "huggingface": ("deepseek",),
    "kilocode": ("openrouter",),
    "kimi-coding": ("deepseek",),
    "kimi-coding-cn": ("deepseek",),
    "nous": ("openrouter",),
    "novita": ("deepseek",),
    "opencode-go": ("deepseek", "others"),
    "opencode-zen": ("deepseek",),
    "openrouter": ("openrouter",),
    "vertex": ("google",),
    "xiaomi": ("deepseek",),
    "zai": ("deepseek",),
}
PLAIN: dict[WireName, str] = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
