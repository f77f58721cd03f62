"""Converts sampling requests and replies between the protocol and our messages."""

from __future__ import annotations

import base64
import binascii

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import ToolSpec
from hermes.mcp.hosting import KeepImage, Sample, SampleRequest
from hermes.mcp.results import IMAGE_TYPES
from hermes.mcp.schemas import clean_description, clean_schema
from hermes.mcp.server import McpServer

_USE, _RESULT = "tool_use", "tool_result"


def request_of(
    server: McpServer, params: JsonObject, keep_image: KeepImage | None = None
) -> SampleRequest:
    """Builds the request within the token limit. Images are included where they can be stored."""
    messages: list[Message] = []
    for each in params.get("messages", ()):
        messages += _to_messages(server, each, keep_image)
    preferences = params.get("modelPreferences") or {}
    hints = (hint.get("name", "") for hint in preferences.get("hints") or ())
    return SampleRequest(
        server=server.name,
        system=str(params.get("systemPrompt") or ""),
        messages=tuple(messages),
        tools=tuple(_to_tool_spec(tool) for tool in params.get("tools") or ()),
        max_tokens=max(1, min(int(params.get("maxTokens", 1)), server.sampling.max_tokens_cap)),
        hints=tuple(hint for hint in hints if hint),
    )


def result_of(sample: Sample) -> JsonObject:
    content = list(sample.content)
    only = content[0] if len(content) == 1 else content
    return {
        "role": "assistant",
        "content": only or {"type": "text", "text": ""},
        "model": sample.model,
        "stopReason": sample.stop,
    }


def content_of(message: AssistantMessage) -> tuple[JsonObject, ...]:
    """Converts a reply to the protocol's content blocks."""
    found: list[JsonObject] = []
    for part in message.parts:
        match part:
            case Text(text=text) if text:
                found.append({"type": "text", "text": text})
            case ToolCall(id=call_id, name=name, arguments=arguments):
                found.append({"type": _USE, "id": call_id, "name": name, "input": arguments})
            case _:
                pass
    return tuple(found)


def tool_rounds(params: JsonObject) -> int:
    """Counts the tool rounds at the end of the messages."""
    rounds = 0
    for message in reversed(params.get("messages", ())):
        kinds = {block.get("type") for block in _blocks(message)}
        if message.get("role") == "assistant" and _USE in kinds:
            rounds += 1
        elif _RESULT not in kinds:
            break
    return rounds


def _blocks(message: JsonObject) -> list[JsonObject]:
    content: JsonValue = message.get("content") or []
    return content if isinstance(content, list) else [content]


def _to_messages(server: McpServer, message: JsonObject, keep: KeepImage | None) -> list[Message]:
    blocks = _blocks(message)
    if message.get("role") == "assistant":
        parts = tuple(part for block in blocks if (part := _assistant_part(block)) is not None)
        stop = "calls" if any(isinstance(part, ToolCall) for part in parts) else "done"
        return [AssistantMessage(parts=parts, stop="calls" if stop == "calls" else "done")]
    results = tuple(
        _to_tool_result(server, block) for block in blocks if block.get("type") == _RESULT
    )
    others = tuple(_user_part(block, keep) for block in blocks if block.get("type") != _RESULT)
    found: list[Message] = [ToolMessage(results=results)] if results else []
    if others:
        found.append(UserMessage(parts=others, origin=server.origin))
    return found


def _user_part(block: JsonObject, keep: KeepImage | None) -> Text | Image:
    kind = str(block.get("mimeType", ""))
    if block.get("type") == "image" and kind in IMAGE_TYPES and keep is not None:
        try:
            data = base64.b64decode(str(block.get("data", "")), validate=True)
        except binascii.Error:
            return Text(text=_block_text(block))
        return Image(file=keep(data, kind), media_type=kind)
    return Text(text=_block_text(block))


def _assistant_part(block: JsonObject) -> Text | ToolCall | None:
    match block.get("type"):
        case "text":
            return Text(text=str(block.get("text", "")))
        case "tool_use":
            return ToolCall(
                id=str(block.get("id", "")),
                name=str(block.get("name", "")),
                arguments=block.get("input") or {},
            )
        case _:
            return None


def _to_tool_result(server: McpServer, block: JsonObject) -> ToolResult:
    inner = block.get("content") or ()
    return ToolResult(
        call_id=str(block.get("toolUseId", "")),
        name="",
        parts=(Text(text="\n".join(_block_text(each) for each in inner)),),
        failed=bool(block.get("isError")),
        origin=server.origin,
    )


def _block_text(block: JsonObject) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    if block.get("type") in ("image", "audio"):
        return f"[{block.get('mimeType', block['type'])}]"
    return encode(block).decode()


def _to_tool_spec(tool: JsonObject) -> ToolSpec:
    return ToolSpec(
        name=str(tool.get("name", "")),
        description=clean_description(str(tool.get("description") or "")),
        parameters=clean_schema(tool.get("inputSchema") or {}),
    )
