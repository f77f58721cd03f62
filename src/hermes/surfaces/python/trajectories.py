"""Appends finished turns to trajectory files in the ShareGPT format."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import UsageError
from hermes.core.messages import AssistantMessage, Image, Message, ToolMessage, UserMessage
from hermes.core.prompt import ToolSpec

COMPLETED = "trajectory_samples.jsonl"
FAILED = "failed_trajectories.jsonl"
SYSTEM = (
    "You are a function calling AI model. You are provided with function signatures within "
    "<tools> </tools> XML tags. You may call one or more functions to assist with the user query. "
    "Don't make assumptions about what values to plug into functions.\n<tools>\n{tools}\n</tools>\n"
    "For each function call return a JSON object with the following schema: "
    '{{"name": <function name>, "arguments": <object of arguments>}}. '
    "Each function call is enclosed in <tool_call> </tool_call> XML tags. Example:\n<tool_call>\n"
    '{{"name": "example", "arguments": {{"key": "value"}}}}\n</tool_call>'
)


def trajectory(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    *,
    model: str,
    completed: bool,
    at: float,
    redact: Callable[[str], str] = str,
) -> JsonObject:
    """The trajectory of a conversation. Its system entry describes the tools; the system prompt of
    the session is not stored."""
    listed: list[JsonValue] = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "required": None,
        }
        for tool in tools
    ]
    turns = [{"from": "system", "value": SYSTEM.format(tools=encode(listed).decode())}]
    images: list[JsonValue] = []
    for message in messages:
        turn = _turn(message)
        turns.append(turn | {"value": redact(turn["value"])})
        if isinstance(message, UserMessage):
            images += [part.file for part in message.parts if isinstance(part, Image)]
    stamp = datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    entry: JsonObject = {
        "conversations": turns,
        "timestamp": stamp,
        "model": model,
        "completed": completed,
    }
    return entry | ({"images": images} if images else {})


def append_trajectory(folder: Path, entry: JsonObject) -> Path:
    """Append the entry to the file for its outcome; raise UsageError when it cannot be written."""
    file = folder / (COMPLETED if entry["completed"] else FAILED)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("ab") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            out.write(encode(entry) + b"\n")
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:
        raise UsageError(f"The trajectory cannot be written to {file}: {error}.") from error
    return file


def _turn(message: Message) -> JsonObject:
    match message:
        case UserMessage():
            marks = ["<image>" for part in message.parts if isinstance(part, Image)]
            return {"from": "human", "value": "\n".join([*marks, message.text])}
        case AssistantMessage():
            return {"from": "gpt", "value": _reply(message)}
        case ToolMessage():
            results = (
                _block(
                    "tool_response",
                    {
                        "tool_call_id": result.call_id,
                        "name": result.name,
                        "content": _embedded(result.text),
                    },
                )
                for result in message.results
            )
            return {"from": "tool", "value": "\n".join(results)}


def _reply(message: AssistantMessage) -> str:
    thought = f"<think>\n{message.reasoning}\n</think>\n"
    if not message.reasoning:
        thought = "<think>\n</think>\n"
    calls = (
        _block("tool_call", {"name": call.name, "arguments": call.arguments})
        for call in message.calls
    )
    return thought + "\n".join(filter(None, (message.text, *calls)))


def _block(name: str, value: JsonObject) -> str:
    return f"<{name}>\n{encode(value).decode()}\n</{name}>"


def _embedded(text: str) -> JsonValue:
    """JSON results are embedded as JSON, other results as text."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return decode(object, text)
    except DecodeError:
        return text
