"""Renders tools, calls and results as plain text for models without tool fields."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.codec.values import replace
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    user_says,
)
from hermes.core.prompt import Prompt, ToolSpec

_INTRODUCTION = """\
# Tools
You act through these tools, one call at a time. Each line describes one:
"""
_FORM = """
Write one JSON object and nothing else. To use a tool:
{"tool": "…", "arguments": {…}}
Its result is the next message. To answer the person, when no tool is needed any more:
{"text": "…"}"""


def without_tools(prompt: Prompt) -> Prompt:
    """The prompt for a model without tools: earlier results become text, calls are dropped."""
    messages = tuple(_drop_calls(message) for message in prompt.messages)
    return replace(prompt, messages=messages, tools=())


def with_tools_as_text(prompt: Prompt) -> Prompt:
    """The prompt for a model whose replies follow `answer_schema`. Its earlier replies get the same
    form."""
    system = f"{prompt.system}\n\n{describe_tools(prompt.tools)}".lstrip()
    messages = tuple(_to_form(message) for message in prompt.messages)
    return replace(prompt, system=system, messages=messages, tools=())


def describe_tools(tools: tuple[ToolSpec, ...]) -> str:
    lines = (encode(tool).decode() for tool in tools)
    return _INTRODUCTION + "\n".join(lines) + "\n" + _FORM


def _drop_calls(message: Message) -> Message:
    match message:
        case AssistantMessage(text=text, calls=calls) if calls:
            return AssistantMessage(parts=(Text(text=text),))
        case ToolMessage():
            return _results(message)
        case _:
            return message


def _to_form(message: Message) -> Message:
    match message:
        case UserMessage():
            return message
        case AssistantMessage(text=text, calls=calls):
            entries = [_call(call) for call in calls] or [{"text": text}]
            return AssistantMessage(parts=(Text(text="\n".join(map(_json, entries))),))
        case ToolMessage():
            return _results(message)


def _call(call: ToolCall) -> dict[str, object]:
    return {"tool": call.name, "arguments": call.arguments}


def _json(value: dict[str, object]) -> str:
    return encode(value).decode()


def _results(message: ToolMessage) -> UserMessage:
    return user_says("\n\n".join(map(_result, message.results)), origin="tool")


def _result(result: ToolResult) -> str:
    how = f"{result.name} failed" if result.failed else f"Result of {result.name}"
    return f"{how}:\n{result.text}"
