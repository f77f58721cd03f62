"""Encodes prompts for the OpenAI responses API."""

from __future__ import annotations

import hashlib

from hermes.codec.identity import IdentityCache
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import Prompt, ToolSpec
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import MarkLife, ModelProfile
from hermes.providers.scrub import clean_text
from hermes.providers.wire.conversation import ConversationFields
from hermes.providers.wire.draft import ReplyBuilder
from hermes.providers.wire.effort import effort_fields
from hermes.providers.wire.format import (
    RequestHead,
    closing,
    is_sealed_by,
    is_worth_sending,
    opening,
    output_limit,
    request_headers,
    sorted_text,
    system_text,
)
from hermes.providers.wire.fragments import Fragments, join_request, json_bytes
from hermes.providers.wire.pictures import ImageLoader, image_placeholder
from hermes.providers.wire.responses_reading import ResponsesReader
from hermes.providers.wire.schemas import tool_schema

# Requests with the same key are routed to the machine that caches their prefix.
_cache_key: IdentityCache[bytes, str] = IdentityCache(lambda head: hashlib.sha256(head).hexdigest())


class ResponsesWire:
    def __init__(
        self, endpoint: Endpoint, profile: ModelProfile, *, life: MarkLife, pictures: ImageLoader
    ) -> None:
        self.fragments = Fragments(self._fragment)
        self._endpoint = endpoint
        self._profile = profile
        self._pictures = pictures
        self._head = RequestHead(self._opening, endpoint, profile, life)
        self._conversation = ConversationFields(endpoint, profile)

    @property
    def url(self) -> str:
        return f"{self._endpoint.url.rstrip('/')}/responses"

    @property
    def headers(self) -> dict[str, str]:
        return request_headers(self._endpoint) | self._conversation.headers

    def encode(self, prompt: Prompt, messages: tuple[Message, ...]) -> bytes:
        self._conversation.update(prompt, messages)
        head = self._head(prompt)
        fragments = self.fragments.of(messages)
        return join_request(head, fragments, closing(self._fields(prompt, head), self._profile))

    def reader(self, *, taken: set[str], place: int) -> ResponsesReader:
        draft = ReplyBuilder(issuer=self._endpoint.issuer, taken=taken, place=place)
        return ResponsesReader(self._endpoint, draft)

    def _opening(self, prompt: Prompt) -> bytes:
        system = system_text(prompt, self._endpoint, self._profile)
        tools = [self._tool(tool) for tool in prompt.tools]
        fields: JsonObject = {"model": self._endpoint.model}
        if system.strip():
            fields["instructions"] = system
        if tools:
            fields["tools"] = tools
        return opening(fields, "input", b"", self._profile)

    def _tool(self, tool: ToolSpec) -> JsonObject:
        return {
            "type": "function",
            "name": tool.name,
            "description": clean_text(tool.description),
            "parameters": tool_schema(tool, self._profile),
            "strict": False,
        }

    def _fields(self, prompt: Prompt, head: bytes) -> JsonObject:
        fields: JsonObject = {"store": False, "prompt_cache_key": _cache_key(head)}
        if prompt.tools:
            choice = "none" if prompt.words_only else "auto"
            fields |= {"tool_choice": choice, "parallel_tool_calls": True}
        if (limit := output_limit(prompt, self._profile)) is not None:
            fields["max_output_tokens"] = limit
        fields |= effort_fields(self._profile, prompt.effort)
        fields |= self._conversation.fields
        if self._profile.streams:
            fields["stream"] = True
        return fields

    def _fragment(self, message: Message) -> bytes:
        return b",".join(
            json_bytes(item, ascii=self._profile.ascii) for item in self._items(message)
        )

    def _items(self, message: Message) -> list[JsonObject]:
        match message:
            case UserMessage(parts=parts):
                return [{"type": "message", "role": "user", "content": self._content(parts)}]
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage(results=results):
                return [self._result(result) for result in results]

    def _assistant(self, message: AssistantMessage) -> list[JsonObject]:
        """Keeps the original order. A reasoning item must be followed by the item it led to."""
        items: list[JsonObject] = []
        for part in message.parts:
            match part:
                case Reasoning() if self._replays(part):
                    items.append(part.sealed or {})
                case Text(text=text) if text.strip():
                    content = [{"type": "output_text", "text": text.strip()}]
                    items.append({"type": "message", "role": "assistant", "content": content})
                case ToolCall():
                    items.append(_call(part))
        while items and items[-1].get("type") == "reasoning":
            items.pop()
        return items

    def _replays(self, part: Reasoning) -> bool:
        return self._profile.replay == "sealed" and is_sealed_by(part, self._endpoint)

    def _result(self, result: ToolResult) -> JsonObject:
        output: JsonValue = result.text
        if any(isinstance(part, Image) for part in result.parts):
            output = (
                self._content(result.parts)
                if self._profile.image_results
                else "\n".join(_text_of_part(part) for part in result.parts)
            )
        return {"type": "function_call_output", "call_id": result.call_id, "output": output}

    def _content(self, parts: tuple[Text | Image, ...]) -> list[JsonObject]:
        encoded = [self._part(part) for part in parts]
        return [part for part in encoded if is_worth_sending(part)]

    def _part(self, part: Text | Image) -> JsonObject:
        if isinstance(part, Image) and self._profile.images:
            url = self._pictures.url_of(part)
            if url is not None:
                return {"type": "input_image", "detail": "auto", "image_url": url}
        return {"type": "input_text", "text": _text_of_part(part)}


def _text_of_part(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else image_placeholder(part)


def _call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": sorted_text(call.arguments),
    }
